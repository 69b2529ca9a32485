"""JSON Schema: does a value fit?"""

from typing import Any

from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.exceptions import relevance
from referencing import Registry
from referencing.exceptions import Unresolvable

_NOTHING_ELSE: Registry[Any] = Registry()
"""Where a `$ref` may lead: into its own schema. Nothing is fetched for somebody's payload."""


def conforms(schema: Any, value: Any) -> str | None:
    """Return what is wrong with a value, in one sentence, or `None` when it fits.

    An empty schema takes everything. A schema that is none takes everything too: it
    was somebody's payload, and a person's answer must not fail for it.
    """
    if not schema:
        return None
    try:
        Draft202012Validator.check_schema(schema)
        validator: Any = Draft202012Validator(schema, registry=_NOTHING_ELSE)
        found: list[ValidationError] = list(validator.iter_errors(value))
    except (SchemaError, Unresolvable, RecursionError):
        return None
    if not found:
        return None
    error = max(found, key=relevance)
    where = error.json_path.removeprefix("$").lstrip(".")
    return f"{where}: {error.message}" if where else error.message
