"""Serves moto's S3 on loopback, on a port that it prints. It checks keys and signatures from the fifth request on."""

import os
import threading

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"

from moto.server import ThreadedMotoServer  # noqa: E402: it reads the environment once

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
threading.Event().wait()
