"""The normal distribution, with the numbers of `scipy.special` (Cephes) to the last bit.

`scipy.special` takes a quarter of a second to import, for four calls in each interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_TAIL = 0.13533528323661269189  # exp(-2)
_UNDERFLOW = 7.09782712893383996843e2

# Moshier, Cephes Mathematical Library 2.1 (1989), ndtri.c and ndtr.c. The first coefficient belongs
# to the highest power; a leading 1 is written out.
_P0 = (
    -5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1,
    1.39312609387279679503e1, -1.23916583867381258016e0,
)  # fmt: skip
_Q0 = (
    1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1,
    -2.25462687854119370527e2, 2.00260212380060660359e2, -8.20372256168333339912e1,
    1.59056225126211695515e1, -1.18331621121330003142e0,
)  # fmt: skip
_P1 = (
    4.05544892305962419923e0, 3.15251094599893866154e1, 5.71628192246421288162e1,
    4.40805073893200834700e1, 1.46849561928858024014e1, 2.18663306850790267539e0,
    -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4,
)  # fmt: skip
_Q1 = (
    1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1,
    1.50425385692907503408e1, 2.50464946208309415979e0, -1.42182922854787788574e-1,
    -3.80806407691578277194e-2, -9.33259480895457427372e-4,
)  # fmt: skip
_P = (
    2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
    4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
    9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2,
)  # fmt: skip
_Q = (
    1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
    9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
    1.65666309194161350182e3, 5.57535340817727675546e2,
)  # fmt: skip
_R = (
    5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
    6.16021097993053585195e0, 7.40974269950448939160e0, 2.97886665372100240670e0,
)  # fmt: skip
_S = (
    1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1,
    1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0,
)  # fmt: skip
_T = (
    9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
    7.00332514112805075473e3, 5.55923013010394962768e4,
)  # fmt: skip
_U = (
    1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
    2.26290000613890934246e4, 4.92673942608635921086e4,
)  # fmt: skip


def quantile(share: float) -> float:
    """The quantile of the standard normal distribution, for shares from 1e-14 to 1 − 1e-14."""
    if share in {0.0, 1.0}:
        return math.inf if share else -math.inf
    is_upper = share > 1 - _TAIL
    rest = 1 - share if is_upper else share
    if rest > _TAIL:
        middle = rest - 0.5
        square = middle * middle
        x = middle + middle * (square * _polynomial(square, _P0) / _polynomial(square, _Q0))
        return x * 2.50662827463100050242
    x = math.sqrt(-2 * math.log(rest))
    z = 1 / x
    x = x - math.log(x) / x - z * _polynomial(z, _P1) / _polynomial(z, _Q1)
    return x if is_upper else -x


def probability(value: float) -> float:
    """The probability that a standard normal number is at most `value`."""
    x = value * math.sqrt(0.5)
    size = abs(x)
    if math.isnan(x):
        return x
    if size < 1:
        return 0.5 + 0.5 * _erf(x)
    tail = 0.5 * _erfc(size)
    return 1 - tail if x > 0 else tail


def _erf(x: float) -> float:
    square = x * x
    return x * _polynomial(square, _T) / _polynomial(square, _U)


def _erfc(x: float) -> float:
    """The complement of the error function, for arguments from 1."""
    if x * x > _UNDERFLOW:
        return 0.0
    over, under = (_P, _Q) if x < 8 else (_R, _S)
    return math.exp(-x * x) * _polynomial(x, over) / _polynomial(x, under)


def _polynomial(x: float, coefficients: Sequence[float]) -> float:
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value
