"""AG-UI over the engine: an ASGI application, a command line, a demo."""

from agui_server.app import create_app

__all__ = ["create_app"]
