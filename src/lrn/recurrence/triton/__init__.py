"""The GPU engine: fused Triton kernels, one time loop and one small function per cell.

``engine.py`` implements the ops; it is imported when the first tensor comes to it, since triton takes a
while.
"""
