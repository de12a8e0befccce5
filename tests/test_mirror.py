"""Every module has a test file of its name, or a stated reason why another file is its test.

The test of `weft/graph/paths.py` is `tests/graph/test_paths.py`; that of a package that shows one
thing, as `tests/core/test_dim.py`, is the test of the package's modules. A row of OTHERS names, for
modules without either, the file that tests them and what makes it their test; it goes when the
modules do, or when all of them have tests of their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Row(NamedTuple):
    """The file under tests/ that tests some modules, and why it does."""

    test: str
    reason: str


OTHERS = {
    # -- tf1: what stands on graphs and sessions --
    "tf1/{array_ops,filling,math_ops,reductions,matrices,indexing,scattering}.py": Row(
        "tf1/test_figures.py", "each function, against TensorFlow's"
    ),
    "tf1/{linalg,image,math}.py": Row("tf1/test_figures.py", "likewise"),
    "tf1/nn/{activations,losses,windows,pooling}.py": Row(
        "tf1/test_figures.py", "each function, against TensorFlow's"
    ),
    "tf1/train/*.py": Row(
        "tf1/test_figures.py", "each optimizer and schedule, against TensorFlow's"
    ),
    "tf1/gradients.py": Row("tf1/test_figures.py", "gradients of every case"),
    "tf1/{environment,replay,recording,plan,stage,host,fetches,feeds,config,context}.py": Row(
        "tf1/test_session.py", "how runs are built, and what is fed and fetched"
    ),
    "tf1/python_ops.py": Row("tf1/test_session.py", "Python inside of runs"),
    "tf1/{tensor,shapes,dtypes,framework,operators,operands,keys}.py": Row(
        "tf1/test_graph.py", "names, shapes and types of tensors"
    ),
    "tf1/compat/*.py": Row("tf1/test_graph.py", "the other name of the face"),
    "tf1/{variables,variable_scope,initializers,random_ops,random}.py": Row(
        "tf1/test_variable.py", "how variables begin, and are shared"
    ),
    "tf1/{bodies,functional,nest,tensor_array}.py": Row(
        "tf1/test_control.py", "loops and branches"
    ),
    "tf1/{messages,estimator}.py": Row("tf1/test_errors.py", "TensorFlow's words"),
    "tf1/{flags,gfile,logging}.py": Row(
        "tf1/test_app.py", "what programs take from their surroundings"
    ),
    "tf1/examples/tutorials/mnist/*.py": Row("tf1/test_app.py", "the digits of the tutorials"),
    "tf1/{losses,metrics}.py": Row("tf1/test_layers.py", "what is collected, and adds up"),
    "tf1/contrib/*.py": Row("tf1/test_layers.py", "layers and their variables"),
    "tf1/nn/{cells,rnn_cell}.py": Row("tf1/nn/test_rnn.py", "every cell over time"),
    # -- tf1: files, summaries, datasets, queues --
    "tf1/{checkpoint_files,meta_graph}.py": Row("tf1/test_saver.py", "files of savers"),
    "tf1/summary_messages.py": Row("tf1/test_summary.py", "what is written and read back"),
    "tf1/{example_messages,file_ops,io,python_io,sparse,sparse_values}.py": Row(
        "tf1/test_parsing.py", "files, and what is parsed of them"
    ),
    "tf1/{inputs,queue,queue_runner,readers}.py": Row(
        "tf1/test_queues.py", "what fills queues, and what is read from them"
    ),
    "tf1/{hooks,watching_hooks}.py": Row("tf1/test_monitored.py", "hooks, run by sessions"),
    # -- core --
    "core/anomaly.py": Row("autodiff/test_anomaly.py", "the flag of detect_anomaly"),
    "core/batching.py": Row("ops/test_vmap.py", "rules of operators for batches, each run"),
    "core/effects.py": Row("graph/test_watch.py", "trips, and what repeated runs show again"),
    "core/errors.py": Row("core/test_tensor.py", "classes and words of messages"),
    "core/facade.py": Row("test_operator_facts.py", "the lists of wf, linalg and functional"),
    "core/facts.py": Row("test_operator_facts.py", "each fact is held against what kernels do"),
    "core/modes.py": Row("autodiff/test_grad_modes.py", "no_grad, enable_grad and their like"),
    "core/namespaces.py": Row("test_operator_facts.py", "public names stand for operators"),
    "core/op.py": Row("ops/test_conformance.py", "declarations, each run in every mode"),
    "core/placing.py": Row("core/test_device.py", "puts tensors on devices"),
    "core/normal_quantile.py": Row(
        "core/random/test_continuous.py", "normal numbers from uniform ones"
    ),
    "core/random/lanes.py": Row("core/random/test_kernels.py", "streams of numbers"),
    "core/reads.py": Row("autodiff/test_constants.py", "reads that transforms watch for"),
    "core/samples.py": Row("ops/test_conformance.py", "samples of operators, each drawn"),
    "core/snapshot.py": Row("core/test_lost_writes.py", "tensors of state_dict refuse writes"),
    "core/temporaries.py": Row("core/test_lost_writes.py", "what is a temporary"),
    "core/specialize.py": Row("core/test_dispatch.py", "writes the calls that it dispatches"),
    "core/tape.py": Row("autodiff/test_backward.py", "what backward walks over"),
    # -- distributions --
    "distributions/{categorical,circular,discrete,gamma,matrices,multivariate,normal}.py": Row(
        "distributions/test_distribution.py", "every class against SciPy"
    ),
    "distributions/{_shared,composed,relaxed,uniform}.py": Row(
        "distributions/test_distribution.py", "likewise"
    ),
    "distributions/kl_pairs.py": Row("distributions/test_kl.py", "each pair, by quadrature"),
    "distributions/{number_transforms,vector_transforms,constraint_registry}.py": Row(
        "distributions/test_transforms.py", "each transform, there and back"
    ),
    # -- dynamic --
    "dynamic/*.py": Row("dynamic/test_function.py", "parts of what a batched function does"),
    "{core,capture}/parts.py": Row(
        "dynamic/test_training.py", "a jitted step around a batched call, its update compiled"
    ),
    # -- capture --
    "capture/{calls,evaluation,history}.py": Row(
        "capture/test_jit.py", "parts of what jit does, run by it"
    ),
    "capture/{alignment,arms,branches,flow,looks}.py": Row(
        "capture/test_joining.py", "how paths are joined, seen by the programs that come of it"
    ),
    "capture/python_state.py": Row("capture/test_loops.py", "states that loops come back to"),
    "capture/written_arguments.py": Row("capture/test_entry.py", "every kind of argument"),
    "capture/{jit_function,jitted,report,written_guards}.py": Row(
        "capture/test_jit.py", "how every call of a jitted function begins"
    ),
    "capture/exported_call.py": Row(
        "capture/test_exporting.py", "what jitted functions and nests of results become"
    ),
    "capture/sizes.py": Row(
        "capture/test_sized_traces.py", "which sizes change, as calls of jitted functions show"
    ),
    "capture/{call_grads,recorded,recorded_call}.py": Row(
        "capture/test_jit.py", "parts of what jit does, run by it"
    ),
    "capture/{recorder,signature,trace}.py": Row(
        "capture/test_jit.py", "parts of what jit does, run by it"
    ),
    "compiler/cache/bundle.py": Row(
        "compiler/test_saved.py", "files of programs, used, damaged and foreign"
    ),
    "{masked,signal}.py": Row("test_public_api.py", "doors, whose names are all looked up"),
    "special.py": Row("test_public_api.py", "a door, whose names are all looked up"),
    "summary.py": Row("viz/test_summaries.py", "a door, through which everything is called"),
    "viz/{summary_files,summary_images}.py": Row(
        "viz/test_summaries.py", "files that are written, and read back"
    ),
    "autodiff/text/{branches,joining}.py": Row(
        "autodiff/text/test_loops.py", "sixty functions, each written, run and compared"
    ),
    "autodiff/text/programs.py": Row(
        "autodiff/text/test_writer.py", "whole steps, each written, run and compared"
    ),
    "nn/version.py": Row("capture/test_jit.py", "train and eval, two programs of jit"),
    "optim/recorded_average.py": Row("jit/test_programs.py", "averages of weights in steps"),
    # -- several processes --
    "distributed/launcher/{worker,heartbeat,messages}.py": Row(
        "distributed/launcher/test_launch.py", "real processes that are run, watched and lost"
    ),
    "distributed/asynchronous/{server,client,windows,local}.py": Row(
        "distributed/test_checkpoints.py", "the checks of programs/cluster.py, in one start of MPI"
    ),
    "distributed/simulation/{calibration,measured,network,timeline}.py": Row(
        "distributed/simulation/test_predictions.py", "what predictions are made of"
    ),
    "distributed/sharded_state.py": Row(
        "distributed/test_checkpoints.py", "models that are spread over processes"
    ),
    "distributed/together.py": Row(
        "distributed/test_checkpoints.py", "what processes hand to one another"
    ),
    "io/spans.py": Row("io/test_parts.py", "boxes and ranges of arrays"),
    "cli/launch_command.py": Row(
        "distributed/launcher/test_launch.py", "started as users start it"
    ),
    "distributed/{errors,kernels,mpi,transport}.py": Row(
        "distributed/test_collectives.py", "operations of real processes"
    ),
    "distributed/{averaging,compression,placing,shards}.py": Row(
        "distributed/test_parallel.py", "parts of data parallel training, on real processes"
    ),
    "autodiff/exchangers.py": Row("autodiff/test_early.py", "who is told of gradients"),
    "graph/communication.py": Row("passes/test_overlap.py", "nodes that compiled programs have"),
    # -- operators --
    "ops/{*,*/*}.py": Row("ops/test_conformance.py", "every operator, with samples, in all modes"),
    # -- graphs --
    "backends/cpu/codegen/told.py": Row(
        "compile/test_run_time_sizes.py", "what code for many sizes is told, in every program"
    ),
    "backends/cpu/runtime/{sharing,sized}.py": Row(
        "compile/test_run_time_sizes.py", "executables that share code and arena"
    ),
    "lower/size_numbers.py": Row("lower/test_at_sizes.py", "numbers that follow from sizes"),
    "graph/builder.py": Row("graph/text/test_printer.py", "builds what printed text says"),
    "graph/call.py": Row("graph/test_session.py", "a call of a session, with its trees"),
    "graph/control/{adjoint,tangent}.py": Row("graph/test_control_gradients.py", "derivatives"),
    "graph/control/*": Row("graph/test_control_flow.py", "cond, while_loop and scan, both modes"),
    "graph/custom.py": Row("graph/test_gradients.py", "rules of the user's, inside of graphs"),
    "graph/debug/frames.py": Row("graph/debug/test_stepper.py", "stacks of nodes and stops"),
    "graph/debug/*": Row("graph/test_watch.py", "what wf.debug shows, in every mode"),
    "graph/draws.py": Row("graph/test_control_flow.py", "random numbers, in loops too"),
    "graph/edit_{bodies,methods,sizes,wiring}.py": Row(
        "graph/test_edit.py", "parts of every edit, in bodies too"
    ),
    "graph/frontend.py": Row("graph/test_placeholders.py", "placeholder and assign"),
    "graph/graph.py": Row("graph/test_bad_input.py", "membership, names and their errors"),
    "graph/identity/content.py": Row("graph/identity/test_fingerprint.py", "what is hashed"),
    "graph/identity/*": Row("graph/identity/test_canonical.py", "steps to one canonical form"),
    "graph/layout.py": Row("graph/test_session.py", "where values of runs by nodes lie"),
    "graph/members.py": Row("graph/test_bad_runs.py", "what may be fetched and fed"),
    "graph/node.py": Row("graph/test_session.py", "nodes and values, as they are run"),
    "graph/operators.py": Row("graph/test_save.py", "operators that files name"),
    "graph/rebuild.py": Row("passes/test_rewrite.py", "what passes and edits are made of"),
    "graph/run.py": Row("graph/test_session.py", "the interpreter of sessions"),
    "graph/scope.py": Row("graph/test_bad_input.py", "scopes of names, and their errors"),
    "graph/serial/*": Row("graph/test_save.py", "files of graphs, sound and damaged"),
    "graph/special.py": Row("graph/test_verify.py", "nodes that are no operators"),
    "graph/symbol.py": Row("graph/test_bad_input.py", "what symbols can and cannot do"),
    "graph/text/*": Row("graph/text/test_printer.py", "parts of a printed graph"),
    "graph/tracer.py": Row("graph/test_bad_input.py", "what an open graph takes and refuses"),
    "graph/update.py": Row("graph/test_static_training.py", "updates of optimizers"),
    "graph/verify_control.py": Row("graph/test_verify.py", "the part for control flow"),
    # -- derivatives --
    "autodiff/arguments.py": Row("autodiff/test_gradient.py", "argnums and has_aux of grad"),
    "autodiff/batching/static/*": Row(
        "autodiff/test_vmap_compositions.py", "vmap of graphs and control flow"
    ),
    "autodiff/calls.py": Row("autodiff/test_compositions.py", "calls that transforms nest"),
    "autodiff/custom/*": Row("autodiff/test_function.py", "rules of the user's"),
    "autodiff/function_op.py": Row("autodiff/test_function.py", "Function, as an operator"),
    "autodiff/layered.py": Row("autodiff/test_forward.py", "values of nested transforms"),
    "autodiff/matching.py": Row("autodiff/test_function.py", "errors of types that do not fit"),
    "autodiff/policies.py": Row("autodiff/test_checkpointing.py", "what checkpoint keeps"),
    "autodiff/pullback.py": Row("autodiff/test_gradient.py", "vjp and grad"),
    "autodiff/pushforward.py": Row("autodiff/test_forward.py", "jvp"),
    "autodiff/record.py": Row("autodiff/test_linear.py", "recordings that linearize replays"),
    "autodiff/replay.py": Row("autodiff/test_checkpointing.py", "regions that are run again"),
    "autodiff/reverse.py": Row("autodiff/test_backward.py", "backward and gradients"),
    "autodiff/rules.py": Row("ops/test_conformance.py", "applies the rules of each operator"),
    "autodiff/static/checkpoint.py": Row(
        "autodiff/test_checkpointing.py", "checkpoint inside of graphs"
    ),
    "autodiff/static/*": Row("graph/test_gradients.py", "gradients and jvp of symbols"),
    "autodiff/text/kernels.py": Row("autodiff/text/test_derivatives.py", "part of what is shown"),
    "autodiff/where_mask.py": Row("autodiff/test_kinks.py", "zeros where a branch is not taken"),
    "autodiff/batching/{control,functions,tape}.py": Row(
        "autodiff/test_vmap_compositions.py", "what vmap meets inside of functions"
    ),
    "autodiff/batching/*": Row("autodiff/test_vmap.py", "parts of one function, vmap"),
    # -- passes --
    "passes/{recompute,remat}.py": Row(
        "compiler/test_budget.py", "rematerialisation within a budget"
    ),
    "passes/dividing/{choices,forms}.py": Row(
        "passes/dividing/test_divide.py", "what is divided, and how it becomes whole again"
    ),
    "passes/match.py": Row("passes/test_simplify.py", "patterns of its rules"),
    "passes/rolling/{alphabet,builder,phases,stacks,trips}.py": Row(
        "passes/test_roll.py", "parts of one pass, over loops of all kinds"
    ),
    "passes/{rule_door,user_rule_check}.py": Row(
        "passes/test_user_rules.py", "how rules are checked before they apply"
    ),
    "passes/scan_edit.py": Row("passes/test_scan_split.py", "edits of scans that it makes"),
    "passes/sized_control.py": Row("passes/test_scan_split.py", "sizes of control flow"),
    "passes/specialize.py": Row("passes/test_scan_split.py", "sizes put into a program"),
    # -- from graphs to machine code --
    "lower/{convolution_weights,windows}.py": Row(
        "lower/test_convolutions.py", "both adjoints, and how images lie"
    ),
    "lower/control.py": Row("compile/test_control.py", "control flow, compiled"),
    "lower/copies.py": Row("backends/cpu/codegen/test_turning.py", "copies, transposed too"),
    "lower/dynamic.py": Row("compile/test_registry.py", "operators without sizes, refused"),
    "compiler/cache/columns.py": Row(
        "compiler/cache/test_packing.py", "plans, packed and unpacked"
    ),
    "compiler/cache/*": Row("compile/test_kept_programs.py", "programs that are kept and found"),
    "eager/array_program.py": Row("eager/test_compilation.py", "machine code as a function"),
    "eager/composites.py": Row("eager/test_composite_kernel.py", "calls in one piece"),
    "eager/uses.py": Row("eager/test_choosers.py", "when machine code is worth it"),
    "lower/{checks,verify_plan}.py": Row("lower/test_verify.py", "what verifiers ask"),
    "lower/frames.py": Row("compile/test_control.py", "values of loops and branches"),
    "lower/indexing.py": Row("compile/test_registry.py", "operators that read by an index"),
    "lower/kinds.py": Row("compile/test_registry.py", "the way into code of each operator"),
    "lower/long_rows.py": Row("lower/test_reductions.py", "reductions of long rows"),
    "lower/lowering.py": Row("compile/test_registry.py", "every operator, lowered and run"),
    "lower/memory.py": Row("compiler/test_memory.py", "what a plan of memory holds"),
    "lower/nests.py": Row("lower/test_order.py", "nests of loops, in their order"),
    "lower/nest_index_maps.py": Row("lower/test_index_maps.py", "index maps inside of nests"),
    "lower/numbering.py": Row("lower/test_program.py", "numbers of buffers and slots"),
    "lower/schedule.py": Row("plan/test_threads.py", "how work is shared out"),
    "lower/verify_plan.py": Row("lower/test_verify.py", "plans, sound and broken"),
    "lower/{storage,views}.py": Row("test_operator_facts.py", "views, held against arrays"),
    "plan/device.py": Row("backends/test_protocol.py", "what back ends say of themselves"),
    "plan/products.py": Row("plan/test_prologues.py", "what planning adds to products"),
    "plan/run_plan.py": Row("compile/test_programs.py", "plans, as they are run"),
    # -- back ends --
    "backends/execution.py": Row("backends/test_protocol.py", "runs of all back ends"),
    "backends/private_file.py": Row("backends/test_store_trust.py", "files of this user alone"),
    "backends/states.py": Row("backends/test_protocol.py", "states of all back ends"),
    "backends/cpu/*.py": Row("backends/test_protocol.py", "one implementer of the protocol"),
    "backends/c_source/{dialect,function,launch}.py": Row(
        "backends/c_source/test_kernels.py", "what texts of kernels are made of"
    ),
    "backends/c_source/*.py": Row(
        "backends/test_conformance.py", "every kind of kernel, run on the devices that are here"
    ),
    "backends/opencl/driver.py": Row("backends/opencl/test_backend.py", "by all that runs there"),
    "backends/cuda/backend.py": Row("backends/cuda/test_driver.py", "devices, by their driver"),
    "backends/cuda/resources.py": Row("backends/cuda/test_nvrtc.py", "read from compiled code"),
    "backends/exporting.py": Row("compiler/test_exported.py", "what is exported, and how"),
    "backends/cpu/export/{checks,files,instances,programs,records,routine,running,threads}.py": Row(
        "backends/cpu/export/test_library.py", "libraries, each of whose functions is called"
    ),
    "backends/cpu/codegen/gemm/*": Row(
        "backends/cpu/codegen/gemm/test_kernel.py", "products of all shapes, layouts and kinds"
    ),
    "backends/cpu/codegen/mathematics/*": Row(
        "backends/cpu/codegen/test_accuracy.py", "every function, held to its bound"
    ),
    "backends/reference/backend.py": Row(
        "backends/test_protocol.py", "one implementer of the protocol"
    ),
    "backends/reference/*": Row(
        "backends/reference/test_kernels.py", "every kind of kernel, by NumPy"
    ),
    "backends/host.py": Row(
        "backends/reference/test_agreement.py", "what all back ends run on the host"
    ),
    "backends/cpu/codegen/target.py": Row(
        "backends/cpu/codegen/test_targets.py", "machines that code is made for"
    ),
    "backends/cpu/codegen/values.py": Row(
        "backends/cpu/codegen/test_text.py", "values of the text of modules"
    ),
    "backends/cpu/codegen/{instructions,lines}.py": Row(
        "backends/cpu/codegen/test_text.py", "what modules are written with"
    ),
    "backends/cpu/codegen/{columns,rows}.py": Row(
        "backends/cpu/codegen/test_tiles.py", "rows and columns in tiles"
    ),
    "backends/cpu/codegen/cost.py": Row(
        "lower/test_text.py", "costs, by which printed programs share work out"
    ),
    "backends/cpu/codegen/fetching.py": Row(
        "backends/cpu/codegen/test_row_passes.py", "which pass asks for the next row"
    ),
    "backends/cpu/codegen/lane_sums.py": Row(
        "backends/cpu/codegen/gemm/test_dot.py", "sums of lanes"
    ),
    "backends/cpu/codegen/random_lanes.py": Row("lower/test_random.py", "random numbers, compiled"),
    "backends/cpu/codegen/scans.py": Row("lower/test_scans.py", "running sums, compiled"),
    "backends/cpu/codegen/scatter.py": Row(
        "lower/test_scatter.py", "elements put by an index, compiled"
    ),
    "backends/cpu/codegen/*": Row(
        "backends/cpu/codegen/test_program_targets.py", "programs with every kind of kernel"
    ),
    "backends/cpu/runtime/native/buffers.py": Row(
        "backends/cpu/runtime/test_buffers.py", "what is given, checked by code"
    ),
    "backends/cpu/runtime/native/{batch_order,shorthand}.py": Row(
        "backends/cpu/runtime/test_batch_order.py", "its loops, which are spelled out by the other"
    ),
    "backends/cpu/runtime/native/call.py": Row(
        "backends/cpu/runtime/test_calls.py", "runs a program by one call"
    ),
    "backends/cpu/runtime/native/poll.py": Row(
        "backends/cpu/runtime/test_interrupts.py", "handlers of signals"
    ),
    "backends/cpu/runtime/native/clock.py": Row(
        "backends/cpu/runtime/test_inspection.py", "reads the clock"
    ),
    "backends/cpu/runtime/native/*": Row(
        "backends/cpu/runtime/test_threads.py", "the pool of threads"
    ),
    "backends/cpu/runtime/memory.py": Row(
        "compile/test_programs.py", "memory of compiled programs"
    ),
    "backends/cpu/runtime/products.py": Row(
        "backends/cpu/codegen/gemm/test_any_size.py", "products of any size"
    ),
    "backends/cpu/runtime/executable.py": Row(
        "compile/test_programs.py", "runs of compiled programs"
    ),
    "backends/cpu/runtime/driving.py": Row(
        "compile/test_kept_programs.py", "loops that Python drives, kept"
    ),
    "backends/cpu/runtime/{analysis,clock,listing,profile,tables,timing}.py": Row(
        "backends/cpu/runtime/test_inspection.py", "what is told of programs"
    ),
    "capture/watch/*": Row(
        "capture/watch/test_random_functions.py", "random functions, watched and repeated"
    ),
    # -- for users --
    "nn/*loss.py": Row("nn/test_loss_layers.py", "losses as layers"),
    "nn/calls.py": Row("nn/test_hooks.py", "calls of modules"),
    "nn/scopes.py": Row("viz/test_draw.py", "scopes of modules, as drawn"),
    "nn/state.py": Row("nn/test_module.py", "state_dict and load_state_dict"),
    "nn/parameter.py": Row("nn/test_module.py", "parameters of modules"),
    "nn/parameter_containers.py": Row(
        "nn/test_containers.py", "lists and dictionaries of parameters"
    ),
    "nn/flops.py": Row("nn/test_summary.py", "counts that summaries show"),
    "nn/functional.py": Row("test_operator_facts.py", "a namespace, whose names are checked"),
    "nn/packed.py": Row("nn/test_recurrent_packed.py", "packed sequences"),
    "nn/positional.py": Row("nn/test_transformer.py", "positions of tokens"),
    "nn/{rnn_cells,time_*}.py": Row("nn/test_recurrent.py", "recurrent layers, step by step"),
    "nn/starting_value.py": Row("nn/test_recurrent.py", "states that layers start with"),
    "nn/models/*": Row("cli/test_models.py", "networks that configurations name"),
    "nn/*.py": Row("nn/test_layers.py", "layers: what they compute, print and refuse"),
    "optim/groups.py": Row("optim/test_optimizer.py", "groups of parameters and their errors"),
    "optim/line_search.py": Row("optim/test_lbfgs.py", "the line search of LBFGS"),
    "optim/lr/*": Row("optim/test_schedules.py", "schedules: formulas, combination, resuming"),
    "optim/*.py": Row("optim/test_references.py", "optimizers, held against their formulas"),
    "data/{bounded,csvfile,digits,errors,idx,imagefolder,numpyfile,parquet,ta*,text}.py": Row(
        "data/test_readers.py", "readers of files"
    ),
    "data/{example,examples,inflate}.py": Row("data/test_tfrecord.py", "what TFRecords hold"),
    "data/plainpickle.py": Row("data/test_cifar.py", "pickles of CIFAR, read and not run"),
    "data/tensors.py": Row("data/test_dataset.py", "one of the datasets"),
    "data/checks.py": Row("data/test_transforms.py", "arguments that are refused"),
    "data/streams.py": Row("data/test_sampler.py", "random numbers of epochs and examples"),
    "data/run.py": Row("data/test_resume.py", "walks through an epoch, broken off and continued"),
    "structures/{alignment,splits}.py": Row(
        "structures/test_ragged.py", "parts of ragged tensors, made and combined"
    ),
    "data/structures/collate.py": Row(
        "data/structures/test_collate_structures.py", "batches of structures, and fit of them"
    ),
    "data/structures/{choices,grammar,molecules,randomtrees}.py": Row(
        "data/structures/test_synthetic_structures.py", "random structures, for any seed"
    ),
    "data/*.py": Row("data/test_workers.py", "processes that load examples"),
    "io/bundle_keys.py": Row("io/test_bundle.py", "keys of slices in bundles"),
    "io/graphs.py": Row("graph/test_save.py", "files of graphs"),
    "io/tensorfile.py": Row("io/test_weights.py", "files of tensors"),
    "io/encode.py": Row("io/test_state.py", "states as files hold them"),
    "io/{foreign,errors}.py": Row("io/test_malformed.py", "files that are none of these"),
    "viz/drawing/*": Row("viz/test_draw.py", "parts of one drawing"),
    "train/{fitting,arrays,losses,summary}.py": Row(
        "train/test_keras.py", "compile, fit, evaluate and predict"
    ),
    "train/checks.py": Row("train/test_estimators.py", "arguments that are refused"),
    "train/{datasets,images}.py": Row("cli/test_commands.py", "data and pictures of commands"),
    "train/extension.py": Row("train/test_extensions.py", "what extensions are made of"),
    "train/interrupts.py": Row("train/test_trainer.py", "training that is stopped"),
    "train/{names,optimizers}.py": Row(
        "train/test_registry.py", "what has a name, and its defaults"
    ),
    "train/objective.py": Row("train/test_updater.py", "losses of batches"),
    "faces/report.py": Row("faces/test_absent.py", "names that were missing"),
    "core/recordings.py": Row("capture/test_objects.py", "what faces add to what is kept whole"),
    "torch/{dtypes,recorded}.py": Row("torch/test_tensor.py", "what tensors are"),
    "torch/{phrasing,sentences}.py": Row("torch/test_words.py", "errors of every kind"),
    "torch/{adoption,tensor_methods,types,sizes,devices,printing,backward,old_types,top}.py": Row(
        "torch/test_tensor.py", "what tensors are, and say of themselves"
    ),
    "torch/{autograd/*,func,random,names,legacy,return_types,absent}.py": Row(
        "torch/test_tensor.py", "gradients, transforms, draws"
    ),
    "torch/{distributions/*,masked,signal/*}.py": Row("torch/test_functions.py", "likewise"),
    "torch/{windows,geometry,storage,writing,view_functions,compiling,capturing}.py": Row(
        "torch/test_views.py", "what shares memory, and what a write reaches"
    ),
    "torch/{catalogue,calls,deferred,linalg,special}.py": Row(
        "torch/test_functions.py", "functions, against figures of PyTorch"
    ),
    "torch/{nn/utils/*,optim/*}.py": Row("torch/test_nn.py", "modules, and how they train"),
    "torch/{multiprocessing,version,mps,xpu,compiler,_dynamo}.py": Row(
        "torch/test_jit.py", "what stands in for what is not here"
    ),
    "torch/{utils/data/*,cuda/*,parts}.py": Row(
        "torch/test_utils.py", "what programs use besides tensors and modules"
    ),
    "torchvision/*.py": Row("torch/test_utils.py", "data sets, transforms and grids of images"),
    "chainer/{initializers,operators,gradients}.py": Row(
        "chainer/test_variable.py", "what variables and parameters are made of"
    ),
    "chainer/{sequential,serializers}.py": Row("chainer/test_link.py", "links, one after another"),
    "chainer/{optimizer,optimizer_hooks}.py": Row(
        "chainer/test_optimizers.py", "each optimizer and hook, against Chainer's"
    ),
    "chainer/{reporter,training/*,training/extensions/*}.py": Row(
        "chainer/training/test_trainer.py", "whole runs"
    ),
    "chainer/{iterators,dataset/*}.py": Row("chainer/test_datasets.py", "batches of datasets"),
    "chainer/computational_graph.py": Row("chainer/test_function_node.py", "its picture"),
    "chainer/{backend,cuda,chainerx,backends/*}.py": Row(
        "chainer/test_datasets.py", "devices that are refused"
    ),
    "caffe/{repeated,scalars,schema/*}.py": Row(
        "caffe/test_message.py", "fields, their values and their types"
    ),
    "caffe/proto/caffe_pb2.py": Row("caffe/test_served.py", "messages, as scripts import them"),
    "caffe/{arrays,net_blobs,needs}.py": Row(
        "caffe/test_pycaffe.py", "blobs, and which have diffs"
    ),
    "caffe/{building,loading,splits,states}.py": Row(
        "caffe/test_network.py", "nets, and how they come into being"
    ),
    "caffe/blobs.py": Row("caffe/test_weights.py", "blobs of files, old and new"),
    "caffe/catalogue/{base,output,sources}.py": Row(
        "caffe/test_network.py", "layers in nets: counts, blobs, inputs"
    ),
    "caffe/catalogue/windows.py": Row(
        "caffe/catalogue/test_convolution.py", "every way to give a kernel"
    ),
    "caffe/{errors,text/lexer}.py": Row("caffe/text/test_reader.py", "texts, and what is refused"),
    "caffe/{snapshots,smoothing,solver_log,solver_nets,solver_signals,solver_types}.py": Row(
        "caffe/test_solver.py", "parts of what solvers do, run by them"
    ),
    "caffe/inputs_protocol.py": Row("caffe/test_network.py", "arrays as what data layers bring"),
    "keras/{functional,naming,printing}.py": Row(
        "keras/test_model.py", "models of symbolic tensors"
    ),
    "keras/{backend,utils,models}.py": Row("keras/test_model.py", "what stands beside models"),
    "keras/activations.py": Row("keras/layers/test_core.py", "every activation in a layer"),
    "keras/{metrics,optimizers,callbacks}.py": Row("keras/test_losses.py", "what compile takes"),
    "keras/layers/{weights,windows}.py": Row(
        "keras/layers/test_convolution.py", "layouts of weights, and padding"
    ),
    "keras/layers/base.py": Row("keras/layers/test_core.py", "what all layers do"),
    "chainer/utils/*.py": Row("chainer/test_links.py", "errors of shapes, and draws of words"),
    "cli/{toml_*,config}.py": Row("cli/test_toml.py", "files, read and written"),
    "cli/{errors,*schema}.py": Row("cli/test_bad_configs.py", "configurations that are refused"),
    "cli/{assemble,model}.py": Row("cli/test_models.py", "networks from configurations"),
    "cli/schedules.py": Row("train/test_registry.py", "schedules by their names"),
    "cli/*.py": Row("cli/test_commands.py", "commands, run from end to end"),
    "serve/errors.py": Row("serve/test_bodies.py", "what is said of bad requests"),
    "serve/pending.py": Row("serve/test_service.py", "results, and those that come too late"),
    "extend.py": Row("test_contributing.py", "operators added through this door"),
    "injections.py": Row("test_architecture.py", "each slot is listed and filled"),
    "debug.py": Row("graph/test_watch.py", "a door, whose functions are used there"),
    "linalg.py": Row("test_operator_facts.py", "a namespace, whose names are checked"),
}


# -- the check -------------------------------------------------------------------------------------


def problems(root: Path, others: Mapping[str, Row] = OTHERS) -> list[str]:
    """Return the modules under `root` without a test, and the rows that stand for none."""
    patterns = spelled_out(others)
    untested = [name for name in modules(root) if not has_own_test(root, name)]
    found = [
        f"weft/{name}: write tests/{place_of_test(name)}, or state in OTHERS which file tests it"
        for name in untested
        if row_of(name, patterns) is None
    ]
    used = {row_of(name, patterns) for name in untested}
    found += [f"{pattern} in OTHERS stands for no module" for pattern in {*patterns} - used]
    missing = [row.test for row in others.values() if not (root / "tests" / row.test).is_file()]
    return sorted([*found, *(f"OTHERS names tests/{test}, which is not there" for test in missing)])


def modules(root: Path) -> list[str]:
    """Return all modules, as paths below weft/; what an `__init__` holds belongs to its package."""
    found = (path.relative_to(root / "weft") for path in (root / "weft").rglob("*.py"))
    return sorted(path.as_posix() for path in found if not path.name.startswith("__"))


def place_of_test(name: str) -> str:
    """Return where the test of a module belongs, below tests/."""
    path = PurePosixPath(name)
    return (path.parent / f"test_{path.stem.lstrip('_')}.py").as_posix()


def has_own_test(root: Path, name: str) -> bool:
    """Tell whether a module, or its package, has a test of its name."""
    package = PurePosixPath(name).parent.as_posix()
    return any((root / "tests" / place_of_test(owner)).is_file() for owner in (name, package))


def row_of(name: str, patterns: Iterable[str]) -> str | None:
    """Return the first pattern that fits a module."""
    path = PurePosixPath("/", name)  # absolute, so that patterns fit as a whole
    return next((pattern for pattern in patterns if path.match(f"/{pattern}")), None)


def spelled_out(others: Mapping[str, Row]) -> list[str]:
    """Return all patterns, those with {several,names} once for each name."""
    found: list[str] = []
    for pattern in others:
        start, names, end = re.fullmatch(r"([^{]*)\{?([^}]*)\}?(.*)", pattern).groups()
        found += [f"{start}{name}{end}" for name in names.split(",")]
    return found


def test_every_module_is_tested_by_a_file_of_its_name_or_a_stated_one():
    assert problems(ROOT) == []


# -- tests of the check ----------------------------------------------------------------------------


def tree(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_a_module_without_a_test_is_found(tmp_path):
    tree(tmp_path, "weft/__init__.py", "weft/core/one.py", "weft/core/_two.py")
    tree(tmp_path, "tests/core/test_two.py", "tests/test_one.py")
    (found,) = problems(tmp_path, {})
    assert found.startswith("weft/core/one.py: write tests/core/test_one.py")


def test_the_test_of_a_package_is_that_of_its_modules(tmp_path):
    tree(tmp_path, "weft/core/dim/one.py", "tests/core/test_dim.py")
    assert problems(tmp_path, {}) == []


def test_rows_go_with_what_they_stand_for(tmp_path):
    tree(tmp_path, "weft/core/one.py", "tests/core/test_one.py", "tests/test_all.py")
    (found,) = problems(tmp_path, {"core/*": Row("test_all.py", "runs it")})
    assert found == "core/* in OTHERS stands for no module"


def test_rows_name_tests_that_exist(tmp_path):
    tree(tmp_path, "weft/core/one.py")
    (found,) = problems(tmp_path, {"core/*": Row("test_all.py", "runs it")})
    assert found == "OTHERS names tests/test_all.py, which is not there"
