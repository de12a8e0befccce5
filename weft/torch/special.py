"""torch.special: special functions, under the names of that module."""

from __future__ import annotations

from typing import Any

from .absent import absent
from .calls import face_function, of_tensor
from .deferred import weft_function
from .names import names

_ONE = names("""
    digamma entr erf erfc erfcx erfinv exp2 expm1 i0 i0e i1 i1e log1p log_ndtr logit ndtr ndtri
    round sinc airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0
    modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0
    scaled_modified_bessel_k1 spherical_bessel_j0 log_softmax softmax logsumexp polygamma
    expit gammaln psi multigammaln mvlgamma
""")
_SEVERAL = names("""
    xlogy xlog1py zeta gammainc gammaincc igamma igammac
    chebyshev_polynomial_t chebyshev_polynomial_u
    chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he
    laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
""")


def _found(named: list[str], *, aligns: bool) -> dict[str, Any]:
    functions: dict[str, Any] = {}
    for name in named:
        known = weft_function(name, "special")
        if known is not None:
            functions[name] = (
                face_function(known, name, aligns=aligns)
                if aligns or name == "polygamma"  # whose first operand is a number
                else of_tensor(known, name)
            )
    return functions


FUNCTIONS: dict[str, Any] = {**_found(_ONE, aligns=False), **_found(_SEVERAL, aligns=True)}
# Those that are functions of torch itself as well.
TOP: dict[str, Any] = {
    name: FUNCTIONS[name]
    for name in names("i0 digamma polygamma igamma igammac mvlgamma")
    if name in FUNCTIONS
}
globals().update(FUNCTIONS)
__getattr__ = absent(globals(), {})
