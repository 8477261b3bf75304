"""Types that many modules share."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
"""An array whose docstring gives its shape and type."""
