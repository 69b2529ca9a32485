"""Who asks. There are no credentials yet: on loopback everybody is the owner of `Settings`.

Everything a route may show or do is decided by the :class:`Caller` it gets here, so whoever
reads a token or a key later fills in these two functions and nothing else.

Source: `protocol.md` section 12.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from starlette.requests import Request

from agui_server.settings import Settings
from engine.core.messages import Json
from engine.core.state import Control


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A person's own frontend: it acts on that person's sessions."""

    tenant: str
    owner: str
    kind: ClassVar[Literal["client"]] = "client"

    def may_see(self, control: Control) -> bool:
        """Whether a session is one of theirs."""
        return (control.tenant, control.owner) == (self.tenant, self.owner)

    def responder(self) -> Json:
        """Return what is recorded about who answered: the channel and the person."""
        return {"channel": self.kind, "user": self.owner}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A backend: it may do everything in its tenant. `user` is the person it speaks for."""

    tenant: str
    user: str | None = None
    kind: ClassVar[Literal["machine"]] = "machine"

    def may_see(self, control: Control) -> bool:
        """Whether a session is one of the tenant's."""
        return control.tenant == self.tenant

    def responder(self) -> Json:
        """Return what is recorded about who answered: the channel, and the person if known."""
        return {"channel": self.kind, **({} if self.user is None else {"user": self.user})}


Caller: TypeAlias = Client | Machine


def client(request: Request) -> Client:
    """Return who calls a client route."""
    settings: Settings = request.app.state.settings
    return Client(tenant=settings.tenant, owner=settings.owner)


def machine(request: Request) -> Machine:
    """Return who calls a machine route."""
    settings: Settings = request.app.state.settings
    return Machine(tenant=settings.tenant)
