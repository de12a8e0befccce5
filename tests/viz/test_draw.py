"""Pictures of graphs: what they show, that nothing overlaps, and that every format works."""

import random
import re
import stat
import struct
import sys
import xml.etree.ElementTree as ET
from importlib import import_module
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as wf
from weft.core import imports
from weft.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    GraphError,
    MissingDependencyError,
    WeftError,
)
from weft.viz.draw import NOTEBOOK_BOXES, draw, repr_svg, small_picture
from weft.viz.drawing import dot, png
from weft.viz.drawing.layout import lay_out
from weft.viz.drawing.level import Spot, make_level
from weft.viz.drawing.order import crossings, order_layers
from weft.viz.drawing.picture import Box, PictureGroup, make_picture
from weft.viz.drawing.place import isotonic
from weft.viz.drawing.png import flattened
from weft.viz.drawing.scene import Curves, Rectangle, SceneText, Triangle
from weft.viz.drawing.style import GROUPS, LOOKS, text_width

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _no_dot_program(monkeypatch):
    """Draw by ourselves even where Graphviz is installed."""
    monkeypatch.setattr(dot.shutil, "which", lambda name: None)


def mlp(layers=2):
    model = [wf.nn.Linear(4, 4) for _ in range(layers)]
    with wf.Graph("mlp") as graph:
        x = wf.placeholder((8, 4), wf.float32, name="x")
        target = wf.placeholder((8, 4), wf.float32, name="target")
        for i, layer in enumerate(model):
            with wf.name_scope(f"layer{i + 1}"):
                x = layer(x).relu()
        with wf.name_scope("loss"):
            loss = ((x - target) ** 2).mean()
        loss.name = "mse"
        wf.gradients(loss, [layer.weight for layer in model])
    return graph


def loop():
    with wf.Graph("newton") as graph:
        a = wf.placeholder((), wf.float32, name="a")
        with wf.name_scope("sqrt"):
            x, _ = wf.while_loop(
                lambda s: abs(s[0] * s[0] - a) > 1e-6,
                lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1),
                (a, wf.tensor(0)),
            )
        (x * 2.0).name = "y"
    return graph


def cycle():
    """Return a graph whose scopes take values from one another, both ways."""
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        with wf.name_scope("a"):
            y = wf.sin(x)
        with wf.name_scope("b"):
            z = wf.cos(y)
        with wf.name_scope("a"):
            w = z + y
        with wf.name_scope("b"):
            w * z
    return graph


def random_graph(seed, size, scopes=True):
    rng = random.Random(seed)
    with wf.Graph("random") as graph:
        values = [wf.placeholder((4,), wf.float32, name=f"in{i}") for i in range(3)]
        for _ in range(size):
            names = [rng.choice("abc") for _ in range(rng.randrange(3 if scopes else 1))]
            with wf.name_scope("/".join(["top", *names]) if names else "top"):
                first, second = rng.choice(values[-9:]), rng.choice(values)
                made = rng.choice(
                    [
                        lambda a, b: a + b,
                        lambda a, b: a * 2.0,
                        lambda a, b: wf.concat([a, b, b])[:4],
                        lambda a, b: a - a.mean(),
                    ]
                )
                values.append(made(first, second))
    return graph


def boxes_of(group):
    for child in group.children:
        if isinstance(child, Box):
            yield child
        else:
            yield from boxes_of(child)


def titles(graph, **options):
    return [box.title for box in boxes_of(make_picture(graph, **options).root)]


def box_of(graph, title):
    (found,) = [box for box in boxes_of(make_picture(graph).root) if box.title == title]
    return found


# -- what a picture shows --------------------------------------------------------------------------


def test_boxes_say_name_operation_operands_attributes_and_type():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        y = x * 2.5
        y.sum(axis=1).name = "total"
    assert box_of(graph, "x").details == ("placeholder", "float32[x_0, 3]")
    assert box_of(graph, "mul").details == ("(·, 2.5)", "float32[x_0, 3]")
    assert box_of(graph, "total").details == ("sum", "axis=(1,)", "float32[x_0]")
    assert "constant" not in titles(graph)


def test_constants_with_many_elements_and_unused_ones_have_boxes():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        x + wf.tensor([1.0, 2.0, 3.0])
    assert "constant" in titles(graph)


def test_kinds_give_colours():
    graph = mlp()
    kinds = {box.kind for box in boxes_of(make_picture(graph).root)}
    assert kinds >= {"placeholder", "state", "elementwise", "reduction", "contraction", "movement"}
    assert kinds <= LOOKS.keys()
    counter = wf.tensor(0.0)
    with wf.Graph() as graph:
        counter.assign(counter + wf.rand(()))
    kinds = {box.kind for box in boxes_of(make_picture(graph).root)}
    assert kinds >= {"assign", "random", "state"}


def test_states_stand_in_the_scope_that_uses_them():
    weight = wf.nn.Parameter(wf.zeros(4))
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        with wf.name_scope("block"):
            x * weight
    (box,) = [box for box in boxes_of(make_picture(graph).root) if box.kind == "state"]
    assert box.group.title == "block"


def test_scopes_nest_and_close_beyond_a_depth():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        with wf.name_scope("a/b"):
            y = wf.sin(x)
            with wf.name_scope("c"):
                z = wf.cos(y) + 1.0
        wf.tanh(z)
    assert titles(graph) == ["x", "sin", "cos", "add", "tanh"]
    assert titles(graph, depth=2) == ["x", "sin", "c", "tanh"]
    assert titles(graph, depth=1) == ["x", "b", "tanh"]
    assert titles(graph, depth=0) == ["x", "a", "tanh"]
    (closed,) = [b for b in boxes_of(make_picture(graph, depth=0).root) if b.title == "a"]
    assert closed.details == ("3 nodes", "float32[4]")
    assert len(make_picture(graph, depth=0).edges) == 2


def test_fetches_show_only_what_they_need():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        y, z = wf.sin(x), wf.cos(x)
        z.name = "z"
    for fetches in (y, [y], {"y": y}, y.value, "sin"):
        text = draw(graph, fetches=fetches)
        assert "sin" in text
        assert "cos" not in text
    assert "sin" not in draw(graph, fetches="z")


def test_subgraphs_of_control_flow_are_groups_inside_their_node():
    graph = loop()
    root = make_picture(graph).root
    (scope,) = [child for child in root.children if isinstance(child, PictureGroup)]
    (control,) = scope.children
    assert control.kind == "control"
    assert control.title == "while_loop (·, 0, ·) → float32[], int64[]"
    assert [part.title for part in control.children] == ["cond", "body"]
    inner = [box.title for box in boxes_of(control.children[1])]
    assert {"div", "output 0", "output 1"} <= set(inner)
    assert "while_loop" in titles(graph, depth=1)
    assert titles(graph, depth=0) == ["a", "sqrt", "y"]


def test_optimised_graphs_show_their_outputs():
    graph = wf.Graph("f")
    with graph:
        x = wf.placeholder((2,), wf.float32, name="x")
        y = x + 1.0
    graph.outputs = [y.value]
    assert titles(graph) == ["x", "add", "output 0"]


# -- the layout ------------------------------------------------------------------------------------


def scene_of(graph, **options):
    return lay_out(make_picture(graph, **options))


def overlap(a, b):
    return (
        a.x < b.x + b.width
        and b.x < a.x + a.width
        and a.y < b.y + b.height
        and b.y < a.y + a.height
    )


def contains(outer, inner):
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def inside(point, box, by=1.0):
    return (
        box.x + by < point[0] < box.x + box.width - by
        and box.y + by < point[1] < box.y + box.height - by
    )


def parts(scene):
    """Return the frames, the boxes, the texts, the curves and the heads of a scene."""
    shapes = scene.shapes
    looks = {(look.fill, look.border) for look in GROUPS.values()}
    bordered = [s for s in shapes if isinstance(s, Rectangle) and s.border]
    frames = [s for s in bordered if (s.fill, s.border) in looks]
    boxes = [s for s in bordered if (s.fill, s.border) not in looks]
    texts = [s for s in shapes if isinstance(s, SceneText)]
    heads = [s for s in shapes if isinstance(s, Triangle)]
    return frames, boxes, texts, [s for s in shapes if isinstance(s, Curves)], heads


def check_scene(scene):
    frames, boxes, texts, curves, _ = parts(scene)
    sheet = Rectangle(0, 0, scene.width, scene.height, 0, "", None)
    assert all(contains(sheet, shape) for shape in (*frames, *boxes))
    assert not any(overlap(a, b) for a, b in pairs(boxes))
    assert all(contains(a, b) or contains(b, a) or not overlap(a, b) for a, b in pairs(frames))
    assert all(contains(a, b) or not overlap(a, b) for a in frames for b in boxes)
    for text in texts:
        line = line_of(text)
        assert any(contains(shape, line) for shape in (*frames, *boxes))
    for point in points(curves):
        assert contains(sheet, Rectangle(*point, 0, 0, 0, "", None))
        assert not any(inside(point, box) for box in boxes)


def pairs(items):
    return combinations(items, 2)


def line_of(text):
    width = text_width(text.text, text.size, bold=text.bold)
    left = text.x - width / 2 if text.centred else text.x
    return Rectangle(left, text.y - text.size * 0.8, width, text.size, 0, "", None)


def points(curves):
    chains = [chain for shape in curves for chain in shape.chains]
    return [point for chain in chains for bezier in chain for point in flattened(bezier)]


GRAPHS = {"mlp": mlp, "loop": loop, "cycle": cycle}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("depth", [None, 0, 1])
def test_nothing_overlaps_and_no_edge_crosses_a_box(name, depth):
    check_scene(scene_of(GRAPHS[name](), depth=depth))


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(0, 40))
def test_random_graphs_are_laid_out(seed, size):
    check_scene(scene_of(random_graph(seed, size)))


@pytest.mark.long
@settings(max_examples=200)
@given(st.integers(0, 10**6), st.integers(40, 120), st.sampled_from([None, 0, 1, 2]))
def test_larger_random_graphs_are_laid_out(seed, size, depth):
    check_scene(scene_of(random_graph(seed, size), depth=depth))


def test_every_edge_ends_in_an_arrow():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        with wf.name_scope("a"):
            y = wf.sin(x) + x
        y * x
    picture = make_picture(graph)
    heads = parts(lay_out(picture))[4]
    assert len(heads) == len(picture.edges) == 5


def test_a_chain_is_a_straight_line():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        for _ in range(20):
            x = wf.sin(x)
    boxes = parts(scene_of(graph))[1]
    assert len(boxes) == 21
    middles = [box.x + box.width / 2 for box in boxes]
    assert max(middles) - min(middles) < 0.1


def test_order_removes_the_crossings_of_a_tree():
    boxes = [Box("general", str(i), (), "", PictureGroup("scope", "", "", None)) for i in range(15)]
    spots = [Spot(box, 40.0, 20.0) for box in boxes]
    order = list(range(15))
    random.Random(1).shuffle(order)
    children = [(i, child) for i in range(7) for child in (2 * i + 1, 2 * i + 2)]
    random.Random(2).shuffle(children)
    edges = [(spots[a], spots[b], boxes[a]) for a, b in children]
    level = make_level([spots[i] for i in order], edges, [], [])
    order_layers(level)
    assert crossings(level) == 0


@given(st.lists(st.floats(-1e3, 1e3), max_size=12))
def test_isotonic_is_ordered_and_keeps_the_mean(wanted):
    found = isotonic(wanted, [1.0] * len(wanted))
    assert all(a <= b + 1e-9 for a, b in pairwise(found))
    assert sum(found) == pytest.approx(sum(wanted), abs=1e-6)


def test_long_edges_of_deep_graphs_become_references():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        kept = [x]
        for _ in range(150):
            kept.append(wf.sin(kept[-1]))
        y = kept[-1]
        for other in reversed(kept[:-1]):
            y = y * other
    scene = scene_of(graph)
    texts = [shape.text for shape in scene.shapes if isinstance(shape, SceneText)]
    assert "from x" in texts
    assert len(scene.shapes) < 12 * len(graph)
    check_scene_size = sum(len(c) for s in parts(scene)[3] for c in s.chains)
    assert check_scene_size < 12 * len(graph)


def test_large_graphs_and_many_loose_nodes():
    scene = scene_of(random_graph(0, 2000, scopes=False))
    assert scene.height > scene.width > 0
    with wf.Graph() as graph:
        for _ in range(500):
            wf.placeholder((4,), wf.float32)
    assert scene_of(graph).width < 2000


def test_an_empty_graph_has_a_picture():
    graph = wf.Graph()
    assert draw(graph).startswith("digraph")
    ET.fromstring(draw(graph, format="svg"))
    ET.fromstring(repr_svg(graph))


@pytest.mark.parametrize("bold", [False, True])
def test_texts_are_not_wider_than_measured(bold):
    pytest.importorskip("matplotlib")
    paths = import_module("matplotlib.textpath")
    fonts = import_module("matplotlib.font_manager")
    font = fonts.FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal", size=100)
    for text in ("float32[batch, 3, 32, 32]", "broadcast_to", "WWWW", "(·, 1e-05) → x", "iiil"):
        drawn = paths.TextPath((0, 0), text, prop=font).get_extents()
        assert drawn.width <= text_width(text, 100, bold=bold) + 1


# -- formats ---------------------------------------------------------------------------------------


NASTY = '<script>alert("&")</script>\\n\x00\x1b\'"]; }'


def nasty():
    with wf.Graph(NASTY) as graph:
        x = wf.placeholder((4,), wf.float32, name=NASTY)
        with wf.name_scope('a<b>&"c'):
            (x + 1.0).name = "数据 ≥ 1"
    return graph


def test_svg_is_valid_xml_without_scripts():
    for graph in (mlp(), loop(), nasty()):
        root = ET.fromstring(draw(graph, format="svg"))
        kinds = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert kinds <= {"svg", "title", "rect", "text", "path", "polygon"}
        assert not [a for e in root.iter() for a in e.attrib if a.startswith("on") or "href" in a]
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "数据 ≥ 1" in texts
    assert 'a<b>&"c' in texts


def test_svg_has_all_numbers_finite():
    assert "nan" not in draw(mlp(), format="svg")
    assert "inf" not in draw(loop(), format="svg").replace("info", "")


def test_dot_text_is_balanced_and_has_every_node_and_edge():
    graph = mlp()
    text = draw(graph)
    picture = make_picture(graph)
    assert text.count("{") == text.count("}")
    assert len(re.findall(r"^  n\d+ -> n\d+", text, re.MULTILINE)) == len(picture.edges)
    assert all(f'"{box.title}\\n' in text for box in boxes_of(picture.root))
    assert "subgraph cluster_" in text
    assert "lhead=cluster_" in draw(loop())


def test_dot_text_escapes_quotes_and_control_characters():
    text = draw(nasty())
    assert "\x00" not in text
    assert "\x1b" not in text
    assert '\\"&\\"' in text
    for line in text.splitlines():  # strings end on the line on which they begin
        assert line.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 0


def test_the_suffix_tells_the_format(tmp_path):
    graph = mlp()
    for name in ("a.svg", "b.DOT", "c.gv"):
        text = draw(graph, tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    draw(graph, str(tmp_path / "noname"), format="svg")
    assert (tmp_path / "noname").read_text().startswith("<svg")
    assert graph.draw(tmp_path / "d.svg", depth=1).startswith("<svg")


def png_size(path):
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:24])


@pytest.mark.parametrize("module", ["matplotlib", "PIL"])
def test_png_by_either_package(tmp_path, monkeypatch, module):
    pytest.importorskip(module)
    hide(monkeypatch, {"matplotlib", "PIL"} - {module})
    graph = loop()
    assert draw(graph, tmp_path / "a.png").startswith("digraph")
    scene = scene_of(graph)
    width, height = png_size(tmp_path / "a.png")
    assert abs(width - 2 * scene.width) <= 2
    assert abs(height - 2 * scene.height) <= 2


def hide(monkeypatch, modules):
    def find(name, *args):
        if name.partition(".")[0] in modules:
            raise ImportError(f"no module named {name}")
        return import_module(name, *args)

    monkeypatch.setattr(imports, "import_module", find)


def test_large_png_is_made_smaller(monkeypatch, tmp_path):
    pytest.importorskip("PIL")
    hide(monkeypatch, {"matplotlib"})
    monkeypatch.setattr(png, "MAX_SIDE", 100)
    draw(mlp(), tmp_path / "a.png")
    assert max(png_size(tmp_path / "a.png")) <= 101


def test_png_without_any_package_says_what_to_install(monkeypatch, tmp_path):
    hide(monkeypatch, {"matplotlib", "PIL"})
    with pytest.raises(MissingDependencyError, match=r"weft\[plot\].*SVG"):
        draw(mlp(), tmp_path / "a.png")


def fake_dot(tmp_path, monkeypatch, body):
    program = tmp_path / "dot"
    program.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(dot.shutil, "which", lambda name: str(program))


@pytest.mark.skipif(sys.platform == "win32", reason="needs executable scripts")
def test_the_dot_program_is_used_if_it_is_there(tmp_path, monkeypatch):
    body = "text = sys.stdin.read(); sys.stdout.write(sys.argv[1] + text[:7])"
    fake_dot(tmp_path, monkeypatch, body)
    assert draw(loop(), tmp_path / "a.svg") == "-Tsvgdigraph"
    draw(loop(), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == b"-Tpngdigraph"
    assert draw(loop(), format="svg").startswith("<svg")  # without a file: by ourselves


@pytest.mark.skipif(sys.platform == "win32", reason="needs executable scripts")
@pytest.mark.parametrize("body", ["sys.exit(1)", "pass", "import time; time.sleep(60)"])
def test_a_dot_program_that_fails_is_not_missed(tmp_path, monkeypatch, body):
    fake_dot(tmp_path, monkeypatch, body)
    monkeypatch.setattr(dot, "SECONDS", 1.0)
    assert draw(loop(), tmp_path / "a.svg").startswith("<svg")


# -- notebooks -------------------------------------------------------------------------------------


def test_notebooks_get_small_pictures():
    graph = mlp(layers=2)
    assert graph._repr_svg_() == repr_svg(graph) == draw(graph, format="svg")
    deep = mlp(layers=60)
    picture = small_picture(deep)
    assert picture is not None
    assert len(list(boxes_of(picture.root))) <= NOTEBOOK_BOXES
    assert len(repr_svg(deep)) < 200_000


def test_a_graph_too_large_to_show_is_summarised():
    with wf.Graph("flat") as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        for _ in range(300):
            x = wf.sin(x)
    assert small_picture(graph) is None
    texts = [element.text for element in ET.fromstring(repr_svg(graph)).iter(f"{SVG}text")]
    assert texts[:2] == ["flat: 301 nodes", "300 elementwise"]


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "a.jpg"}, "suffix.*a.jpg"),
        ({"path": "a"}, "suffix"),
        ({"format": "pdf"}, "format must be one of svg, png, dot.*pdf"),
        ({"format": "png"}, "path"),
        ({"depth": -1}, "depth.*-1"),
        ({"depth": 1.5}, r"depth.*1\.5"),
        ({"depth": True}, "depth.*True"),
        ({"fetches": "nothing"}, "no value named 'nothing'"),
        ({"fetches": 3}, "fetches.*3"),
        ({"fetches": wf.tensor(1.0)}, "fetches"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    graph = loop()
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        draw(graph, **options)


def test_other_objects_and_foreign_symbols_are_refused():
    with pytest.raises(ArgumentTypeError, match=r"Graph.*list"):
        draw([1])
    with wf.Graph():
        x = wf.placeholder((), wf.float32)
    with pytest.raises(GraphError, match="does not belong"):
        draw(loop(), fetches=x)


def test_a_directory_that_is_not_there_is_reported(tmp_path):
    with pytest.raises((OSError, WeftError)):
        draw(loop(), tmp_path / "missing" / "a.svg")
