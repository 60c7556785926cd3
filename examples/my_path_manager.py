"""Your own path manager: a subflow for every address, like the built-in `full_mesh`.

.venv/bin/anabranch run examples/wifi_3g.toml --path-manager examples/my_path_manager.py:Mesh
"""

from collections import deque
from dataclasses import dataclass

from anabranch.policy import (
    AddressChanged,
    Close,
    Established,
    LocalAddress,
    Open,
    PathAction,
    PathContext,
    PathEvent,
    PathManager,
    SocketAddress,
    SubflowClosed,
    SubflowEstablished,
)

SECOND = 1_000_000_000


@dataclass
class Pair:
    """A local address and the remote address, between which the manager wants a subflow."""

    local: LocalAddress
    remote: SocketAddress
    missing: bool
    usable: bool = True
    failures: int = 0
    retry_ns: int | None = None


class Mesh(PathManager):
    """Opens a subflow for each pair, and re-opens it after a pause that doubles each time."""

    def __init__(self) -> None:
        self.pairs: dict[int, Pair] = {}  # by local address ID
        self.actions: deque[PathAction] = deque()

    def handle_event(self, ctx: PathContext, event: PathEvent) -> None:
        """React to a change of the connection, of a subflow, or of an address."""
        match event:
            case Established(initiator=True, local=addresses, remote=remote):
                for local in addresses:
                    if local.address.version == remote.address.version:
                        # Address 0 opened the connection and already has a subflow.
                        self.pairs[local.id] = Pair(local, remote, missing=local.id != 0)
                        self.open(self.pairs[local.id])
            case SubflowEstablished(id=id):
                for view in ctx.subflows:
                    if view.id == id and view.local_address_id in self.pairs:
                        self.pairs[view.local_address_id].failures = 0
            case SubflowClosed(local_address_id=address) if address in self.pairs:
                self.closed(ctx, self.pairs[address])
            case AddressChanged(local_address_id=address, usable=usable):
                self.changed(ctx, address, usable)

    def handle_timeout(self, ctx: PathContext) -> None:
        """Open the subflows whose pause is over."""
        for pair in self.pairs.values():
            if pair.retry_ns is not None and pair.retry_ns <= ctx.now_ns:
                self.open(pair)

    def poll_action(self) -> PathAction | None:
        """The next action, if there is one."""
        return self.actions.popleft() if self.actions else None

    def poll_timeout(self) -> int | None:
        """The time of the next attempt to re-open a subflow."""
        times = [pair.retry_ns for pair in self.pairs.values() if pair.retry_ns is not None]
        return min(times, default=None)

    def closed(self, ctx: PathContext, pair: Pair) -> None:
        """Schedule another attempt."""
        pair.missing = True
        if pair.usable:
            pause_s = min(2**pair.failures, 60)
            pair.failures += 1
            pair.retry_ns = ctx.now_ns + pause_s * SECOND

    def changed(self, ctx: PathContext, address: int, usable: bool) -> None:
        """Close the subflows of an interface that went down, or re-open one that came back up."""
        if not usable:
            on_it = [view for view in ctx.subflows if view.local_address_id == address]
            self.actions.extend(Close(view.id, reset=True) for view in on_it)
        if address in self.pairs:
            pair = self.pairs[address]
            pair.usable, pair.failures = usable, 0
            self.open(pair)

    def open(self, pair: Pair) -> None:
        """Open the subflow of a pair if it is missing."""
        pair.retry_ns = None
        if pair.missing and pair.usable:
            pair.missing = False
            self.actions.append(Open(pair.local, pair.remote))
