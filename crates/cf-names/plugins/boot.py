import os, sys
sys.path[:] = [p for p in sys.path if p not in ("", ".")]
from types import ModuleType
channel = os.dup(1)
os.dup2(2, 1)
def read(count):
    parts = []
    while count:
        part = os.read(channel, min(count, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
import json
def program():
    return json.loads(read(int.from_bytes(read(4), "big")))
package = sys.modules["setpoint_plugins"] = ModuleType("setpoint_plugins")
package.__path__, package.descriptor = [], channel
for name, text in program():
    name = "setpoint_plugins." + name
    module = sys.modules[name] = ModuleType(name)
    exec(compile(text, "<" + name + ">", "exec"), module.__dict__)
sys.modules["setpoint_plugins.worker"].main()
