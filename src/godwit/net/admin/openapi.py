"""The API's description for programs and people, made from its table and its structs."""

from __future__ import annotations

from typing import Any

import msgspec

from godwit import __version__
from godwit.net.access import Role
from godwit.net.admin.api import ENDPOINTS, OF_CLIENTS, PREFIX, Endpoint

REFERENCE = "#/components/schemas/{name}"


def described() -> dict[str, Any]:
    """OpenAPI 3.1."""
    answers = [one.answer for one in ENDPOINTS]
    bodies = [one.body for one in ENDPOINTS if one.body is not None]
    schemas, components = msgspec.json.schema_components([*answers, *bodies], ref_template=REFERENCE)
    posted = iter(schemas[len(answers) :])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Godwit broker",
            "version": __version__,
            "description": "What operators see and do. Log in with a user of the broker's users file that has a role.",
        },
        "security": [{"basic": []}],
        "paths": {
            PREFIX + one.path: _path(one, answer, next(posted) if one.body is not None else None)
            for one, answer in zip(ENDPOINTS, schemas, strict=False)
        },
        "components": {"schemas": components, "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
    }


def _path(one: Endpoint, answer: Any, posted: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": one.summary,
        "operationId": one.path.replace("/", "_"),
        "tags": ["actions" if one.role is Role.OPERATOR else "views"],
        "x-role": str(one.role),
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": answer}}},
            "400": {"description": "The question or the action cannot be; the text says why."},
            "401": {"description": "Wrong user name or password."},
            "403": {"description": "The user has not the role for this."},
        },
    }
    if one.query:
        told["parameters"] = [
            {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
            for name, text in one.query.items()
        ]
    if posted is not None:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": posted}}}
        if one.path.rpartition("/")[2] in OF_CLIENTS:
            told["description"] = "`client` must be given, and `confirm` be true."
    return {"post" if posted is not None else "get": told}
