"""The OpenAPI description, including the limits of this service."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from hanlattice.serving.limits import needs_token
from hanlattice.serving.settings import Settings


def openapi_schema(app: FastAPI, settings: Settings) -> dict[str, Any]:
    """The description of the routes and their types, with the limits and the token that the settings define."""
    description = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes,
        servers=[{"url": settings.root_path}] if settings.root_path else None,
    )  # fmt: skip
    schemas = description["components"]["schemas"]
    text, texts = (schemas["EntitiesRequest"]["properties"][name]["anyOf"][0] for name in ("text", "texts"))
    texts["maxItems"] = settings.max_texts
    for limited in (text, texts["items"], schemas["ExplainRequest"]["properties"]["text"]):
        limited["maxLength"] = settings.max_chars
    put = description["paths"]["/v1/lexicons/{id}"]["put"]["responses"]
    put["200"] = {**put["201"], "description": "Replaced."}
    put["201"] = {**put["201"], "description": "Created."}
    if settings.token is not None:
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in description["paths"].items():
            for operation in operations.values():
                operation["security"] = [{"token": []}] if needs_token(path) else []
    return description
