"""Your own scheduler: lowest round-trip time first, like the built-in `min_rtt`.

.venv/bin/python examples/my_scheduler.py
"""

import anabranch
from anabranch.policy import Decision, ScheduleContext, Scheduler, Send, SubflowView, Wait


class LowestRtt(Scheduler):
    """Picks the subflow with the lowest RTT among those that may carry the data and have room."""

    def schedule(self, ctx: ScheduleContext) -> Decision:
        """Choose the subflow for the next segment."""
        ready = [subflow for subflow in ctx.eligible() if subflow.can_send()]
        if not ready:
            return Wait()
        return Send(min(ready, key=SubflowView.srtt_or_max_ns))


def scenario(scheduler: str | type[Scheduler]) -> anabranch.Scenario:
    return anabranch.Scenario(
        name="wifi-3g",
        duration="20s",
        paths=(
            anabranch.NetworkPath(
                name="wifi", rate="8Mbit/s", delay="10ms", limit="54packets", loss="0.5%"
            ),
            anabranch.NetworkPath(
                name="3g", rate="2Mbit/s", delay="75ms", limit="334packets", jitter="50ms"
            ),
        ),
        connections=(
            anabranch.Connection(
                scheduler=scheduler,
                receive_buffer="200KiB",
                remedies={"opportunistic_retransmission": True},
                workload=anabranch.Bulk(),
            ),
        ),
    )


def main() -> None:
    for scheduler in ("min_rtt", LowestRtt):
        run = anabranch.run(scenario(scheduler), seed=1)
        print(f"digest {run.digest}, {run.wall_s:.2f} s")


if __name__ == "__main__":
    main()
