"""`lrn serve`: a page on this machine to try a model in.

server.py   the HTTP server: who may ask, what is answered
page.py     the page it gives out, made of script.js and style.css: one file that asks for nothing else
"""

from lrn.serve.server import HOST, Server, bind

__all__ = ["HOST", "Server", "bind"]
