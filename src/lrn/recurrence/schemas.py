"""The schemas of the ops: the one list of them, which ``library.py`` hands to torch.

Run as a program it prints the same list as C++, for the library that programs without Python load
(``cpu/schemas.cpp``). So it imports nothing.

Shapes stand where the ops are used: ``ops.py`` (scan), ``atr.py`` (atr), ``attention.py`` (attend),
``matrix.py`` (walk, fused). Those of an engine are implemented for its own dispatch key; ``walk``,
``fused`` and the overloads ``by``, which hand on to the engine they name, run everywhere.
"""

from __future__ import annotations

_ROWS = "Tensor? lengths, Tensor? batch_sizes, Tensor? reset"
_GRADIENTS = "Tensor? grad_output, Tensor? grad_final"
_SCAN = f"{_ROWS}, str cell, str direction, bool batch_first"
_ATR = f"{_ROWS}, str activation, str direction, bool batch_first"
_ATTEND = "Tensor query, Tensor score, Tensor keys, Tensor values, Tensor starts"
_WALK = (
    f"Tensor x, Tensor state, Tensor weight, Tensor? bias, Tensor? scale, {_ROWS}, "
    "str cell, str? norm, str direction, bool batch_first"
)
_FUSED = (
    "Tensor x, Tensor state, Tensor weight_ih, Tensor weight_hh, Tensor? bias, Tensor? bias_hh, "
    "Tensor? lengths, Tensor? batch_sizes, str cell, bool batch_first"
)

SCHEMAS = (
    f"scan(Tensor x, Tensor state, Tensor? weight, {_SCAN}) -> (Tensor output, Tensor memory, Tensor final)",
    # By an engine that was asked for by name and is not the one that torch finds by the type of device.
    f"scan.by(Tensor x, Tensor state, Tensor? weight, {_SCAN}, str engine) "
    "-> (Tensor output, Tensor memory, Tensor final)",
    # Into output and memory, which are there already and may be parts of larger ones.
    f"scan_into(Tensor x, Tensor state, Tensor? weight, {_SCAN}, Tensor(a!) output, Tensor(b!) memory) "
    "-> Tensor final",
    f"scan_backward({_GRADIENTS}, Tensor x, Tensor state, Tensor? weight, Tensor memory, {_SCAN}) "
    "-> (Tensor grad_x, Tensor grad_state, Tensor grad_weight)",
    f"scan_backward.by({_GRADIENTS}, Tensor x, Tensor state, Tensor? weight, Tensor memory, {_SCAN}, "
    "str engine) -> (Tensor grad_x, Tensor grad_state, Tensor grad_weight)",
    f"atr(Tensor x, Tensor state, Tensor weight, Tensor? bias, {_ATR}, bool keep) "
    "-> (Tensor output, Tensor q, Tensor final)",
    f"atr_backward({_GRADIENTS}, Tensor x, Tensor state, Tensor weight, Tensor? bias, "
    f"Tensor output, Tensor q, {_ATR}) "
    "-> (Tensor grad_x, Tensor grad_state, Tensor grad_weight, Tensor grad_bias)",
    f"attend({_ATTEND}, int longest) -> (Tensor context, Tensor weights)",
    # Adds to the gradients of keys and values, which are there already: many steps share them.
    f"attend_backward(Tensor grad_context, {_ATTEND}, Tensor weights, "
    "Tensor(a!)? grad_keys, Tensor(b!)? grad_values) -> (Tensor grad_query, Tensor grad_score)",
    f"walk({_WALK}) -> (Tensor output, Tensor final)",
    f"walk_backward({_GRADIENTS}, bool[] needed, {_WALK}) -> Tensor[]",
    f"fused({_FUSED}) -> (Tensor output, Tensor final)",
    f"fused_backward({_GRADIENTS}, bool[] needed, {_FUSED}) -> Tensor[]",
)

if __name__ == "__main__":
    for _schema in SCHEMAS:
        print(f'm.def("{_schema}");')
