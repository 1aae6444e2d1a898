# The bridge with git and node inside, so that agents from npm run in it too.
#
#   docker build -t agent-bridge .
#   docker compose up        (compose.yaml says what has to be set)
#
# Add your agents in an image on top of it: RUN npm install --global --prefix /usr/local @agentclientprotocol/claude-agent-acp

FROM python:3.12-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/agent-bridge
COPY requirements-image.lock .
RUN /opt/agent-bridge/bin/pip install --no-cache-dir --require-hashes -r requirements-image.lock
COPY pyproject.toml README.md LICENSE ./
COPY alembic alembic
COPY app app
RUN /opt/agent-bridge/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM node:22-bookworm-slim AS node

FROM python:3.12-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git git-lfs openssh-client tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
    && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
COPY --from=build /opt/agent-bridge /opt/agent-bridge

# Not root: a program that gets out of an agent's sandbox still has no rights.
RUN useradd --uid 10001 --create-home bridge \
    && install --directory --owner bridge --mode 700 /data /shared
USER bridge
WORKDIR /home/bridge
ENV PATH=/opt/agent-bridge/bin:/home/bridge/.npm-global/bin:$PATH \
    NPM_CONFIG_PREFIX=/home/bridge/.npm-global \
    PYTHONUNBUFFERED=1 \
    DATA_DIR=/data \
    HOST=0.0.0.0 \
    PORT=8000 \
    LOG_FORMAT=json
VOLUME /data
EXPOSE 8000 8001
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# tini reaps what agents leave behind; TERM reaches the bridge, which then drains.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--"]
CMD ["agent-bridge", "serve"]
