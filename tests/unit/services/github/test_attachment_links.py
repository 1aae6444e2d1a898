"""What was dropped into a text of GitHub: only GitHub's own addresses, each once."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.github.conversation import FILES, Hosts, Origin, files_in, shown
from app.services.github.names import Name, Spot

GITHUB = Hosts("https://github.com")
ENTERPRISE = Hosts("https://git.example.com")
SPOT = Spot("acme/widgets", 7)
COMMENT = Name("comment", 41)
UUID = "1a2b3c4d-1111-2222-3333-444455556666"
IMAGE = f"https://github.com/user-attachments/assets/{UUID}"


def names(text: str, hosts: Hosts = GITHUB) -> list[str]:
    return [file.name for file in files_in(text, SPOT, COMMENT, hosts)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"![]({IMAGE})", ["attached-1a2b3c4d"]),
        (f'<img src="{IMAGE}">', ["attached-1a2b3c4d"]),
        (f"{IMAGE}\n{IMAGE}", ["attached-1a2b3c4d"]),
        (f"https://github.com/acme/widgets/assets/99/{UUID}", ["attached-1a2b3c4d"]),
        ("[log](https://github.com/user-attachments/files/12/my.log.txt)", ["my.log.txt"]),
        ("https://github.com/acme/widgets/files/12/trace.zip", ["trace.zip"]),
        ("https://github.com/user-attachments/files/12/%2e%2e%2fpasswd", ["_2e_2e_2fpasswd"]),
        (IMAGE.replace("github.com", "github.com.evil.example"), []),
        (IMAGE.replace("https", "http"), []),
        ("https://github.com/user-attachments/assets/not-a-number", []),
        ("https://github.com/acme/widgets/blob/main/files/12/x", []),
    ],
)
def test_what_was_dropped_is_found_by_the_addresses_that_github_makes(
    text: str, found: list[str]
) -> None:
    assert names(text) == found


def test_no_more_than_some_files_of_one_message_are_taken() -> None:
    text = "\n".join(
        f"https://github.com/user-attachments/files/{n}/a.txt" for n in range(FILES + 5)
    )

    files = files_in(text, SPOT, COMMENT, GITHUB)

    assert len(files) == FILES
    assert len({file.url for file in files}) == FILES
    assert all(file.url.partition("/")[0].isalnum() for file in files)


def test_a_file_knows_where_it_was_dropped() -> None:
    (file,) = files_in(IMAGE, SPOT, Name("comment", 41, "edited"), GITHUB)

    assert Origin.parse(file.origin) == Origin(SPOT, COMMENT, IMAGE)


@pytest.mark.parametrize(
    ("hosts", "address", "allowed"),
    [
        (GITHUB, "https://github.com/x", True),
        (GITHUB, "https://private-user-images.githubusercontent.com/1/2.png?jwt=x", True),
        (GITHUB, "https://github-production-user-asset-6210df.s3.amazonaws.com/1", True),
        (GITHUB, "https://github-production-evil.s3.amazonaws.com/1", False),
        (GITHUB, "http://github.com/x", False),
        (GITHUB, "https://githubusercontent.com.evil.example/x", False),
        (GITHUB, "https://evilgithubusercontent.com/x", False),
        (GITHUB, "https://github.com@evil.example/x", False),
        (GITHUB, "https://github.com:444/x", False),
        (GITHUB, "https://x.githubusercontent.com:444/x", False),
        (GITHUB, "https://evil.example\\.githubusercontent.com/x", False),
        (GITHUB, "https://127.0.0.1/x", False),
        (GITHUB, "//github.com/x", False),
        (GITHUB, "/x", False),
        (GITHUB, "", False),
        (ENTERPRISE, "https://git.example.com/storage/1?token=x", True),
        (ENTERPRISE, "https://media.git.example.com/1", True),
        (ENTERPRISE, "https://other.example.com/1", False),
        (ENTERPRISE, "https://x.githubusercontent.com/1", False),
    ],
)
def test_files_come_from_hosts_of_github_alone(hosts: Hosts, address: str, allowed: bool) -> None:
    assert hosts.allows(address) is allowed


ODD = st.text(alphabet=st.sampled_from("https:/\\@#?.gitubcomrevlx%[]1 \t"), max_size=40)


@given(ODD, ODD)
def test_whatever_an_address_looks_like_its_host_is_one_of_githubs(before: str, after: str) -> None:
    address = f"{before}github.com{after}"

    is_githubs = GITHUB.allows(address)

    assert not is_githubs or f".{urlsplit(address).hostname}".endswith(
        (".github.com", ".githubusercontent.com")
    )


def test_the_signed_address_is_taken_from_what_people_see() -> None:
    signed = f"https://private-user-images.githubusercontent.com/1/7-{UUID}.png?jwt=a.b&amp;c=d"
    plain = f'<a href="{IMAGE}">it</a>'
    rendered = f'<p>{plain}<a href="{signed}"><img src="{signed}" alt="x"></a></p>'

    assert shown(rendered, IMAGE, GITHUB) == signed.replace("&amp;", "&")
    assert shown(plain, IMAGE, GITHUB) == IMAGE
    assert shown("<p>nothing</p>", IMAGE, GITHUB) is None
    evil = f'<img src="https://evil.example/{UUID}.png?jwt=x">'
    assert shown(evil, IMAGE, GITHUB) is None
    assert shown(plain, "https://evil.example/x", GITHUB) is None
