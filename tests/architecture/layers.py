"""The tables of the layer rule: who may import whom, and what comes from above."""

from __future__ import annotations

PACKAGE = "weft"

# A layer imports itself and the layers to its left.
CHAIN = (
    "core",
    "ops",
    "graph",
    "autodiff",
    "passes",
    "lower",
    "plan",  # kernel programs for a device: products, fetching, memory layout, threads
    "backends",
    "compiler",
    "eager",  # kernels for single operations: the compiler's first user
    "capture",
    "dynamic",  # code for one example, run for many at once
    "structures",  # ragged tensors
    "distributed",  # several processes
    "train",
    "serve",  # trained models behind HTTP
    "faces",  # what the faces of other frameworks share
    "chainer",
    "keras",
    "tf1",
    "caffe",
    "torch",
    "torchvision",
    "cli",
)
# Siblings stand above autodiff; they see one another only through the package's `__init__`.
SIBLINGS = ("nn", "optim", "data", "io", "viz", "distributions")
SIBLINGS_STAND_ON = "autodiff"
# The compiler knows graphs, not networks: of the chain, only these may use siblings and doors.
MAY_USE_SIBLINGS = CHAIN[CHAIN.index("capture") :]

# Modules directly under the package that are no layer themselves, and the highest layer each may
# import. They are doors for users; the layers below `MAY_USE_SIBLINGS` never go through them.
DOORS = {
    "debug": "graph",
    "extend": "train",
    "linalg": "autodiff",
    "masked": "autodiff",
    "signal": "autodiff",
    "special": "autodiff",
    "summary": "capture",
    "__main__": "cli",
}

# They wire the layers together, may import all of them, and are imported by none.
WIRING = ("__init__", "injections")

# Slots of lower layers, each with the reason why the layer cannot do without what is above it.
INJECTIONS = {
    "backend_names": "`wf.device` takes the names of back ends, which are folders of weft/backends",
    "device_names": "likewise, and those of a kind have numbers, which its back end knows",
    "device_count": "likewise",
    "device_runtime": "tensors on a device hold its memory, and kernels there are compiled",
    "large_kernels": "generated calls on large tensors ask for machine code",
    "multiply_matrices": "kernels of operators multiply with machine code on Weft's own threads",
    "cond_of_batches": "`cond` inside vmap may take both branches: batching stands on graphs",
    "loop_of_batches": "`while_loop` inside vmap runs until every example ends; likewise",
    "run_exchange": "kernels of operators on several processes go to their connections",
    "start_exchange": "likewise, in two parts",
    "take_exchange": "likewise",
    "process_place": "loaders give each process its rows of a batch; processes stand above data",
    "agreed_object": "likewise, by the seed of process 0",
    "compile_program": "a session runs what the compiler makes of its graph",
    "compile_for_sizes": "likewise, where sizes change from call to call",
    "export_program": "a session writes what the compiler makes of its graph to a file",
    "Graph.optimize": "a method of the user's class; passes are written over graphs",
    "Graph.memory_plan": "a method of the user's class; planning is",
    "Graph.draw": "a method of the user's class; pictures are",
    "Graph.repr_svg": "what a notebook shows; pictures are",
    "Graph.write_tensorboard": "a method of the user's class; TensorBoard's format is",
    "Graph.save": "a method of the user's class; files are",
    "Graph.load": "a method of the user's class; files are",
    "Module.compile": "Keras's methods of a network: training stands on networks",
    "Module.evaluate": "likewise",
    "Module.export": "a method of the user's class; programs are made above",
    "Module.fit": "likewise",
    "Module.predict": "likewise",
}

# Their classes have the names that another framework gave them.
FACES = ("chainer", "keras", "tf1", "caffe", "torch", "torchvision")

# Classes that users know by these names in two places.
TWICE = {
    "Checkpoint": "wf.io: a saved state; wf.train: the extension that saves them",
    "EarlyStopping": "Keras's callback; the trainer's extension",
    "ReduceLROnPlateau": "PyTorch's schedule; Keras's callback",
    "Sampler": "wf.extend: sample inputs of an operator; wf.data: the order of examples",
    "Transform": "wf.data: of examples; wf.distributions: of random variables",
    "Summary": "wf.nn: the table of a model; wf.train: means of what was observed",
}

# The mechanism: the only modules that may import by a name that is not written out.
# `faces/serving.py` loads what programs import, under the names of other frameworks.
# `caffe/catalogue/python.py` loads the modules of Python layers, which a net names.
IMPORTERS = ("core/imports.py", "injections.py", "faces/serving.py", "caffe/catalogue/python.py")
BY_NAME = (
    *("import_module", "__import__", "load", "load_modules", "require", "is_available"),
    "resolve_name",
)

FORBIDDEN_EVERYWHERE = ("scipy", "torch", "jax", "tensorflow")
COMPILING = ("passes", "lower", "plan", "backends", "compiler", "eager")  # in threads, too
REPLACED = {  # what this package has a better one of, and why
    "functools.cached_property": "core/cached_property.py, which holds no lock that a fork may meet"
}
MAY_USE_LLVMLITE = ("backends", "compiler")
HARD_DEPENDENCIES = ("numpy", "llvmlite")
