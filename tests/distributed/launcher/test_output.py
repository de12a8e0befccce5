"""What is passed on of what mpiexec prints, and what is kept."""

from __future__ import annotations

import io
import os
import selectors
import sys

from weft.distributed.launcher.output import Terminal, log_path, tail

SAID = b"""from rank 0
--------------------------------------------------------------------------
a long message of mpiexec
--------------------------------------------------------------------------
4 more processes have sent help message help-mpi-ft.txt / some:thing
[vm:123] /openmpi/ompi/mca/osc/x.c:375  Error: no such network

the end without a newline"""


def test_messages_of_mpiexec_are_kept_and_the_rest_is_passed_on(tmp_path):
    selector = selectors.DefaultSelector()
    terminal = Terminal(selector, tmp_path)
    read, write = os.pipe()
    shown = io.StringIO()
    with os.fdopen(read, "rb", buffering=0) as pipe:
        terminal.follow(pipe, shown)
        for i in range(0, len(SAID), 7):
            os.write(write, SAID[i : i + 7])
            for key, _ in selector.select(0):
                key.data()
        os.close(write)
        while selector.get_map():
            for key, _ in selector.select(1):
                key.data()
    terminal.close()
    assert shown.getvalue() == "from rank 0\nthe end without a newline\n"
    assert b"a long message of mpiexec\n" in terminal.said
    assert tail(log_path(tmp_path, 0)) == "from rank 0\nthe end without a newline"


def test_standard_output_is_passed_on_as_it_comes(tmp_path, capsysbinary):
    terminal = Terminal(selectors.DefaultSelector(), tmp_path)
    terminal._pass_on(0, b"50 %\r", sys.stdout)
    terminal._pass_on(0, b"100 %", sys.stdout)
    terminal.close()
    assert capsysbinary.readouterr().out == b"50 %\r100 %"


def test_logs_that_are_elsewhere(tmp_path):
    assert tail(tmp_path / "none.log") == ""
    (tmp_path / "long.log").write_text("\n".join(map(str, range(100))))
    assert tail(tmp_path / "long.log", 2) == "98\n99"
