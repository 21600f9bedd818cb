"""Serves localstripe on loopback, on a port that it prints, with nothing kept on disk."""

import socket

from aiohttp import web
from localstripe.resources import store
from localstripe.server import app

store.dump_to_disk = lambda: None

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
web.run_app(app, sock=listener, print=None, access_log=None)
