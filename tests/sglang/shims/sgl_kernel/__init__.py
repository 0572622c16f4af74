"""Stands in for SGLang's kernel package, whose wheels are built for CUDA only.

With `SGLANG_USE_CPU_ENGINE=1`, SGLang 0.5.23 imports some `*_cpu` helpers when its modules load. No operator
`torch.ops.sgl_kernel.convert_weight_packed` is registered here, so it then takes its paths in plain torch and calls
none of them; one that is called all the same says so.
"""

from collections.abc import Callable
from typing import Any, NoReturn

__version__ = "0.4.10"


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if not name.endswith("_cpu"):
        raise AttributeError(name)

    def missing(*args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(f"sgl_kernel.{name} needs the kernels' CPU build, which is not on the package index")

    return missing
