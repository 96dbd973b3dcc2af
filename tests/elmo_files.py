"""Small ELMo models with random weights, written as the official ones are."""

import json

import h5py
import numpy as np

OPTIONS = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 5,
        "cell_clip": 0.3,  # small, so that it matters
        "proj_clip": 0.1,
        "dim": 7,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 3], [2, 4], [4, 6]],
        "n_highway": 2,
        "embedding": {"dim": 3},
        "n_characters": 262,
        "max_characters_per_token": 12,
    },
}


def changed(lstm=(), char_cnn=()):
    """The options with other values for some."""
    return {
        "lstm": {**OPTIONS["lstm"], **dict(lstm)},
        "char_cnn": {**OPTIONS["char_cnn"], **dict(char_cnn)},
    }


def draw_weights(options=OPTIONS, seed=1):
    """Random weights by name, as the official file has them."""
    draw = np.random.default_rng(seed)
    lstm, cnn = options["lstm"], options["char_cnn"]
    size = sum(count for _, count in cnn["filters"])
    width, cells, characters = lstm["projection_dim"], lstm["dim"], cnn["embedding"]["dim"]
    shapes = {"char_embed": (261, characters)}
    for n, (reads, count) in enumerate(cnn["filters"]):
        shapes |= {f"CNN/W_cnn_{n}": (1, reads, characters, count), f"CNN/b_cnn_{n}": (count,)}
    for n in range(cnn["n_highway"]):
        for part in ("carry", "transform"):
            shapes |= {f"CNN_high_{n}/W_{part}": (size, size), f"CNN_high_{n}/b_{part}": (size,)}
    shapes |= {"CNN_proj/W_proj": (size, width), "CNN_proj/b_proj": (width,)}
    for direction in range(2):
        for n in range(lstm["n_layers"]):
            name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{n}/LSTMCell"
            shapes |= {
                f"{name}/W_0": (2 * width, 4 * cells),
                f"{name}/B": (4 * cells,),
                f"{name}/W_P_0": (cells, width),
            }
    scales = {name: 0.5 if len(shape) == 1 else np.prod(shape[:-1]) ** -0.5 for name, shape in shapes.items()}
    scales["char_embed"] = 1.0  # so that words differ
    return {
        name: (draw.standard_normal(shape) * scales[name]).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_elmo(folder, options=OPTIONS, seed=1, weights=None, names=("options.json", "weights.hdf5")):
    """Write a folder of an ELMo; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(json.dumps(options))
    with h5py.File(folder / names[1], "w") as file:
        for name, value in (draw_weights(options, seed) if weights is None else weights).items():
            file[name] = value
    return folder
