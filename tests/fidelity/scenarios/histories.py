"""Generated histories that were kept as scenarios: files of steps, in ``histories/kept``."""

from __future__ import annotations

from fakekafka.tests.fidelity.histories import keeping
from fakekafka.tests.fidelity.stage.declaring import Catalogue

SCENARIOS = Catalogue(keeping.scenarios())
