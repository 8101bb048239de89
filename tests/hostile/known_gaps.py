"""Programs that do not get the verdict they must get yet, with the reason. Must be empty in the end.

The suite prints them; they fail nothing until they are mended, and must then leave this table.
"""

_SHARED = (
    "sandbox/processes.anonymous_bytes: where no memory control group is writable, shared anonymous pages and "
    "detached System V segments count for nobody; count Pss of smaps_rollup, and forbid segments in the box"
)
_OUTSIDE = (
    "launcher/runs._worked_in_secret: CPU time is set against cores * busy + 60 ms, so on a short or loaded job a "
    "spinner hides in the cores that its calls did not use; count the box's CPU time between its orders instead "
    "(pread of the box's cpuacct file by the judge before and after each order), or freeze it then"
)

KNOWN_GAPS: dict[str, str] = {
    "hides memory in shared segments": _SHARED,
    "hides memory in shared pages": _SHARED,
    "spins beside its baseline": _OUTSIDE,
    "lets a child spin beside its baseline": _OUTSIDE,
    "disturbs with moderation": _OUTSIDE,
    "works ahead in a thread": _OUTSIDE,
}
