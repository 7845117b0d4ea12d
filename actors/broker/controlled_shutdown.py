"""A broker's side of a controlled shutdown: it asks the controller to move its leaderships away.

docs/kafka/brokers.md#controlled-shutdown
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...protocol.awaiting import Cancelled
from ...protocol.config import BrokerConfig
from ...protocol.control import ControlledShutdownRequest, ControlledShutdownResponse
from ...protocol.errors import ErrorCode, FakeKafkaError
from ...protocol.host import sleep
from ...protocol.names import broker_name
from ..node import Node


async def move_leaderships_away(
    node: Node,
    config: BrokerConfig,
    make_request: Callable[[], ControlledShutdownRequest],
    find_controller: Callable[[], Awaitable[int | None]],
) -> bool:
    """Ask the controller, ``controlled.shutdown.max.retries`` times at most.

    Returns whether this broker leads no partition any more.
    """
    controller_id = None
    for _ in range(config["controlled.shutdown.max.retries"]):
        try:
            found = await find_controller()
            controller_id = controller_id if found is None else found
            if controller_id is not None:
                response: ControlledShutdownResponse = await node.ask(
                    broker_name(controller_id),
                    make_request(),
                    config["controller.socket.timeout.ms"],
                )
                if response.error == ErrorCode.NONE and not response.remaining_partitions:
                    return True
        except Cancelled:
            raise
        except FakeKafkaError as error:
            node.log("info", f"controlled shutdown: {error}")
        await sleep(node, config["controlled.shutdown.retry.backoff.ms"])
    node.log("warn", "proceeding with an unclean shutdown")
    return False
