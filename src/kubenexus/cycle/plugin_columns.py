"""What one Filter plugin returned for one class, on all rows."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import grow
from kubenexus.cycle import plugin_output
from kubenexus.framework.extension_points import Filter, RowRefusals
from kubenexus.framework.plugin_results import FAILURES, plugin_error
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.profile import PluginTraits
from kubenexus.framework.verdict import NO_REASONS, NodeVerdict, ReasonTable
from kubenexus.state.view import Nodes

_BYTE = 255


class FilterColumn(msgspec.Struct, gc=False, eq=False):
    """`bits[n]` holds the reasons against row n, 0 if there are none. `bits` is None while no row was ever refused.

    The column has the smallest type that holds all bits: most classes have a handful of reasons.
    """

    plugin: Filter
    traits: PluginTraits
    reasons: ReasonTable = NO_REASONS
    bits: Any = None

    def ask(self, pod: PodClass, nodes: Nodes) -> Any:
        """Calls the plugin for these rows. Returns its reasons as bits: a number for one row, a column for several."""
        plugin: Any = self.plugin
        trusted = self.traits.trusted
        verdict = NodeVerdict(self.reasons if trusted else self.reasons.copy())
        try:  # not `call_plugin`: a call fewer for each row that changes
            answer = plugin.filter(pod, nodes if trusted else nodes.locked(), verdict)
        except FAILURES as error:
            raise plugin_error(plugin, error) from error
        if not trusted:
            plugin_output.rejected(answer, verdict, nodes, plugin.name)
        self.reasons = verdict.table
        return verdict.row_bits if nodes.single else verdict.bits

    def refusal_bits(self, refusals: RowRefusals) -> int:
        """Returns the reasons that a CombinedRule found against one row, as bits."""
        reasons = refusals.get(self.plugin.name, ())
        if reasons and self.reasons is NO_REASONS:
            self.reasons = ReasonTable()
        return sum([self.reasons.bit(reason) for reason in reasons])

    def fill(self, bits: Any) -> None:
        """Takes the reasons for all rows."""
        if isinstance(bits, int):
            self.bits = None
        else:
            self.bits = bits if bits.dtype == np.uint8 else bits.astype(np.min_scalar_type(int(bits.max(initial=0))))

    def put(self, rows: Any, bits: Any, size: int) -> bool:
        """Takes the reasons for some rows (an index or an array of them). Returns whether they changed."""
        if self.bits is None and isinstance(bits, int) and not bits:
            return False
        if isinstance(rows, int) and self.bits is not None and bits == self.bits.item(rows):
            return False
        top = bits if isinstance(bits, int) else int(bits.max(initial=0))
        if self.bits is None:
            self.bits = np.zeros(size, np.min_scalar_type(top))
        elif top > _BYTE and top > np.iinfo(self.bits.dtype).max:
            self.bits = self.bits.astype(np.min_scalar_type(top))
        changed = isinstance(rows, int) or bool(np.count_nonzero(self.bits[rows] != bits))
        if changed:
            if not self.bits.flags.writeable:  # classes that refuse the same rows share them until they differ
                self.bits = self.bits.copy()
            self.bits[rows] = bits
        return changed

    def at(self, row: int) -> int:
        """Returns the reasons against a row, as bits."""
        return 0 if self.bits is None else int(self.bits.item(row))

    def stretch(self, size: int) -> None:
        """Adds rows up to `size`. The repair that follows writes their reasons."""
        if self.bits is not None:
            self.bits = grow(self.bits, size)
