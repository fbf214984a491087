"""A server for tests: python service_main.py STORAGE PORT [LIMITS PROXIES], with limits in JSON."""

import json
import sys

from dbcare.server.app import serve
from dbcare.server.service_limits import ServiceLimits

if __name__ == "__main__":
    storage, port, *others = sys.argv[1:]
    limits, proxies = others or ("{}", "")
    serve(storage, "127.0.0.1", int(port), limits=ServiceLimits(**json.loads(limits)), trusted_proxies=proxies or None)
