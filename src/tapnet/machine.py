"""The machine that numbers come from, and the arithmetic that all of its kind share. Imports no torch by itself."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tapnet.errors import SettingError

NOT_RECORDED = "not recorded"
_X86 = platform.machine().lower() in ("x86_64", "amd64")
_NO_FMA = "glibc.cpu.hwcaps=-FMA,-FMA4"
# What libraries read when they are loaded: without it each takes the widest instructions of the processor.
REPRODUCIBLE = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_DISABLE_INTEL_SVML": "1",
    "OPENBLAS_CORETYPE": "Prescott" if _X86 else "ARMV8",
    "OPENBLAS_NUM_THREADS": "1",
    **({"ONEDNN_MAX_CPU_ISA": "SSE41"} if _X86 else {}),
    **({"GLIBC_TUNABLES": _NO_FMA} if _X86 and sys.platform == "linux" else {}),  # exp and log have variants with FMA
}
_OF_ARITHMETIC = ("machine", "cpu", "torch_cpu", "numba_cpu", "blas")


def is_reproducible() -> bool:
    """Whether the environment asks for the arithmetic that does not depend on the processor."""
    return not _missing()


def _missing() -> dict[str, str]:
    """The variables that have another value, with the wanted one; other tunables of glibc stay."""
    missing = {}
    for name, value in REPRODUCIBLE.items():
        here = os.environ.get(name)
        if name == "GLIBC_TUNABLES" and here and here != value:
            if _NO_FMA in here.split(":"):
                continue
            others = [part for part in here.split(":") if not part.startswith("glibc.cpu.hwcaps=")]
            value = ":".join([*others, value])
        if here != value:
            missing[name] = value
    return missing


def require_reproducible() -> None:
    """Refuses to compute what is to be reproducible in a process whose libraries were loaded otherwise.

    Raises:
        SettingError: Says which variables of the environment to set.
    """
    if missing := _missing():
        words = " ".join(f"{name}={value}" for name, value in missing.items())
        raise SettingError(f"reproducible: start Python with these variables in its environment: {words}")
    import torch
    from numba import config

    if torch.backends.cpu.get_cpu_capability() != "DEFAULT" or config.CPU_NAME != "generic" or not _from_the_start():
        names = ", ".join(REPRODUCIBLE)
        raise SettingError(f"reproducible: {names} were set after Python had started; set them before that")


def _from_the_start() -> bool:
    """Whether the variables of the C library were there when the process started; True where that is not known."""
    try:
        first = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return True
    return "GLIBC_TUNABLES" not in REPRODUCIBLE or any(
        line.startswith(b"GLIBC_TUNABLES=") and _NO_FMA.encode() in line for line in first
    )


def restart_reproducibly() -> None:
    """Starts the program again with the variables set, unless they are set or torch is loaded already."""
    if is_reproducible() or "torch" in sys.modules:
        return
    _restart({**os.environ, **_missing()})


def _restart(environment: dict[str, str]) -> NoReturn:
    command = [sys.executable, *sys.orig_argv[1:]]
    if sys.platform == "win32":  # there, exec would end this process while the other still runs
        raise SystemExit(subprocess.call(command, env=environment))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, environment)


def wait_briefly() -> None:
    """Lets threads of GNU's OpenMP, which torch has on Linux, sleep sooner where they wait for each other.

    With another program on one of their cores they would spin for milliseconds at every operator: predicting 8,000
    molecules took 11 to 22 s instead of 6; alone, an epoch takes up to 6 % longer. It is read when torch is loaded.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


# ---- what a result records ----


def describe_machine() -> dict[str, str]:
    """What the numbers of this process depend on besides the program and its settings.

    Returns:
        ``machine`` (system and architecture), ``cpu`` (model), ``torch_cpu`` and ``numba_cpu`` (the instruction sets in
        use), ``blas`` (of torch and NumPy) and ``threads`` (of torch now, of the machine).
    """
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {**_lasting(), "threads": f"torch {torch.get_num_threads()}, {cores} cores"}


@cache
def _lasting() -> dict[str, str]:
    import torch

    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "torch_cpu": torch.backends.cpu.get_cpu_capability(),
        "numba_cpu": _numba_target(),
        "blas": f"torch {_torch_blas()}, NumPy {_numpy_blas()}",
    }


def _cpu_model() -> str:
    """Its name, with family and model number where Linux gives them: a virtual machine may hide the name."""
    fields: dict[str, str] = {}
    if sys.platform == "linux":
        with suppress(OSError):
            text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
            fields = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in text.splitlines())}
    elif sys.platform == "darwin":
        with suppress(OSError, subprocess.SubprocessError):
            words = ["sysctl", "-n", "machdep.cpu.brand_string"]
            fields["model name"] = subprocess.run(
                words, capture_output=True, text=True, check=True, timeout=5
            ).stdout.strip()
    name = fields.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{k.rpartition(' ')[2]} {fields[k]}" for k in ("cpu family", "model", "CPU part") if k in fields]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _numba_target() -> str:
    """The processor that Numba compiles for, and its vector instructions."""
    from numba.core.registry import cpu_target

    codegen: Any = cpu_target.target_context.codegen()
    _, name, features = codegen.magic_tuple()
    vector = [f for f in ("avx", "avx2", "avx512f", "fma", "neon", "sve") if f"+{f}" in features.split(",")]
    return " ".join([name or "host", *vector])


def _torch_blas() -> str:
    import torch

    text = torch.__config__.show()
    library = re.search(r"BLAS_INFO=(\w+)", text)
    name = "MKL" if torch.backends.mkl.is_available() else library[1] if library else "of its own"
    version = re.search(r"Math Kernel Library Version (\S+?)-", text)
    mode = os.environ.get("MKL_CBWR") if name == "MKL" else None
    return " ".join(filter(None, [name, version and version[1], mode]))


def _numpy_blas() -> str:
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    found = config.get("Build Dependencies", {}).get("blas", {})
    words = [found.get("name"), found.get("version"), os.environ.get("OPENBLAS_CORETYPE")]
    return " ".join(str(word) for word in words if word) or "of its own"


def machine_in_words(recorded: dict[str, str], any_cpu: bool = False) -> str:
    """What a result records of its machine, in one line; ``any_cpu`` leaves out the processor.

    Results of earlier versions record no processor: for those it is "not recorded".
    """
    if "cpu" not in recorded:
        return NOT_RECORDED
    system, cpu, torch_cpu, numba_cpu, blas = (str(recorded.get(name, "?")) for name in _OF_ARITHMETIC)
    return f"{'any CPU' if any_cpu else cpu}, {system}: torch {torch_cpu}, Numba {numba_cpu}, BLAS {blas}"
