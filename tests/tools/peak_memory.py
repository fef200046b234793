"""Peak memory of programs that tests run in another process."""

from __future__ import annotations

import sys
from pathlib import Path


def measuring(code: str) -> str:
    """Python code in which ``peak`` is defined."""
    return f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom peak_memory import peak\n{code}"


def peak() -> int:
    """Peak memory of this process in bytes.

    On Linux, ``ru_maxrss`` would include the memory of the process that started it (the one of pytest).
    """
    if sys.platform == "linux":
        (line,) = (one for one in Path("/proc/self/status").read_text("ascii").splitlines() if one.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
