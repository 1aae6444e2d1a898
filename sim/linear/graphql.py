"""Answers GraphQL requests from a tree of plain values, checked by graphql-core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import graphql


class GraphqlInvalid(Exception):
    """A document or its variables break the schema."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A document with one query or mutation that fits a schema."""

    document: graphql.DocumentNode
    node: graphql.OperationDefinitionNode

    @property
    def fields(self) -> tuple[str, ...]:
        """What is asked for or done, at the top."""
        chosen = self.node.selection_set.selections
        return tuple(each.name.value for each in chosen if isinstance(each, graphql.FieldNode))

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.node.operation is graphql.OperationType.MUTATION


@lru_cache(maxsize=64)
def read_operation(schema: graphql.GraphQLSchema, document: str) -> Operation:
    """Read a document, and refuse what the schema does not have.

    Raises:
        GraphqlInvalid: it is no query or mutation of this schema, or more than one.
    """
    try:
        parsed = graphql.parse(document)
    except graphql.GraphQLSyntaxError as error:
        raise GraphqlInvalid(error.message) from error
    node = graphql.get_operation_ast(parsed)
    if node is None or schema.get_root_type(node.operation) is None:
        raise GraphqlInvalid("a document holds one query or one mutation")
    if errors := graphql.validate(schema, parsed):
        raise GraphqlInvalid(errors[0].message)
    return Operation(parsed, node)


def execute(
    schema: graphql.GraphQLSchema,
    operation: Operation,
    variables: Mapping[str, Any],
    root: Mapping[str, Any],
) -> dict[str, Any]:
    """Answer from a tree whose values are plain, or functions of a field's arguments.

    Raises:
        GraphqlInvalid: a variable is not declared, or not of its type.
    """
    declared = operation.node.variable_definitions or ()
    if unknown := set(variables) - {each.variable.name.value for each in declared}:
        raise GraphqlInvalid(f"variables nobody declared: {sorted(unknown)}")
    answer = graphql.execute_sync(
        schema,
        operation.document,
        root,
        variable_values=dict(variables),
        field_resolver=_resolve,
    )
    for error in answer.errors or ():
        cause = error.original_error
        if cause is None or isinstance(cause, graphql.GraphQLError):
            raise GraphqlInvalid(error.message)
        raise cause
    return answer.data or {}


def _resolve(source: Mapping[str, Any], info: graphql.GraphQLResolveInfo[Any], **given: Any) -> Any:
    value = source[info.field_name]
    return value(**given) if callable(value) else value
