"""Serving: a model behind HTTP, with requests of many clients run as one batch.

    wf.serve.run(model, inputs=((784,), "float32"), port=8000)

Enter: a module, a graph or a trained run. Leave: an ASGI application (`app`), or a server (`run`,
or for a while `background`). The packages starlette, uvicorn and httptools, which
`pip install "weft[serve]"` gets, are loaded when one is made. It stands on train; the command line
`weft serve` stands on it.
"""

from .app import app
from .limits import ServeLimits
from .model import ServedModel
from .server import background, run

__all__ = ["ServeLimits", "ServedModel", "app", "background", "run"]
