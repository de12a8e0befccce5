"""An alarm that moves: it rings when it was set last, and not before."""

import asyncio

from weft.serve.alarm import Alarm


async def _rings(script, wait=0.2):
    """Return what rings, with the time of each, after a script was played on an alarm."""
    loop = asyncio.get_running_loop()
    alarm, rung, begun = Alarm(loop), [], loop.time()

    def ring(name):
        return lambda: rung.append((name, loop.time() - begun))

    await script(alarm, ring)
    await asyncio.sleep(wait)
    alarm.stop()
    return rung


def test_it_rings_once():
    async def script(alarm, ring):
        alarm.set(0.02, ring("a"))

    ((name, when),) = asyncio.run(_rings(script))
    assert (name, when >= 0.019) == ("a", True)


def test_it_moves_to_a_later_and_to_a_sooner_time():
    async def script(alarm, ring):
        alarm.set(0.02, ring("a"))
        alarm.set(0.1, ring("b"))

    ((name, when),) = asyncio.run(_rings(script))
    assert (name, when >= 0.099) == ("b", True)

    async def sooner(alarm, ring):
        alarm.set(60, ring("a"))
        alarm.set(0.02, ring("b"))

    ((name, _),) = asyncio.run(_rings(sooner))
    assert name == "b"


def test_it_is_silent_when_it_is_cleared_or_stopped():
    async def cleared(alarm, ring):
        alarm.set(0.02, ring("a"))
        alarm.clear()
        await asyncio.sleep(0.05)
        alarm.set(0.01, ring("b"))

    assert [name for name, _ in asyncio.run(_rings(cleared))] == ["b"]

    async def stopped(alarm, ring):
        alarm.set(0.02, ring("a"))
        alarm.stop()

    assert asyncio.run(_rings(stopped)) == []
