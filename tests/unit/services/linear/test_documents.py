"""Every document is valid: for the simulated Linear always, for the published schema where it is.

`TEST_LINEAR_SCHEMA` names the file of the published schema, which is not ours to distribute.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import graphql
import pytest

from app.services.linear.api import DocumentName, document
from sim.linear import Linear
from sim.linear.schema import SDL

NAMES = get_args(DocumentName)


@pytest.fixture(scope="module")
def published() -> graphql.GraphQLSchema:
    path = os.environ.get("TEST_LINEAR_SCHEMA")
    if path is None:
        pytest.skip("TEST_LINEAR_SCHEMA does not name Linear's published schema")
    return graphql.build_schema(Path(path).read_text())


def test_every_document_has_a_name_and_every_name_a_document() -> None:
    folder = Path(document.__wrapped__.__code__.co_filename).parent / "documents"

    assert sorted(path.stem for path in folder.iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_valid_for_the_simulated_linear(name: DocumentName) -> None:
    schema = graphql.build_schema(SDL)

    assert graphql.validate(schema, graphql.parse(document(name))) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_valid_for_the_published_schema(
    name: DocumentName, published: graphql.GraphQLSchema
) -> None:
    assert graphql.validate(published, graphql.parse(document(name))) == []


def test_the_simulated_linear_has_no_name_of_its_own(published: graphql.GraphQLSchema) -> None:
    own = graphql.build_schema(SDL)

    invented = [
        f"{name}.{field}"
        for name, kind in own.type_map.items()
        if isinstance(kind, graphql.GraphQLObjectType | graphql.GraphQLInputObjectType)
        and not name.startswith("__")
        for field, of in kind.fields.items()
        if str(_published(published, name, field)) != str(of.type)
    ]

    assert invented == []


def _published(schema: graphql.GraphQLSchema, name: str, field: str) -> object:
    kind = schema.type_map.get(name)
    fields = getattr(kind, "fields", {})
    return fields[field].type if field in fields else None


@pytest.mark.parametrize(
    "query",
    [
        "query Q { viewer { nickname } }",
        "query Q { viewer { organization } }",
        "query Q { viewer { id { id } } }",
        "query Q { user { id } }",
        'query Q { user(id: "1", name: "x") { id } }',
        "query Q($id: Int!) { user(id: $id) { id } }",
        "query Q($id: String!) { viewer { id } }",
        "subscription S { viewer { id } }",
        "query Q { viewer { id } } query R { viewer { id } }",
        "query Q { viewer { id }",
        "",
    ],
)
def test_the_simulated_linear_refuses_what_is_not_in_its_schema(query: str) -> None:
    with Linear() as linear:
        status, answer, _ = linear.answer(linear.agent("demo"), {"query": query})

    assert status == 400
    assert answer["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
