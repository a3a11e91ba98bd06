"""What a stranger might write, to be shown as words wherever it stands."""

from __future__ import annotations

HOSTILE = (
    "<script>document.title='pwned'</script><img src=x onerror=alert(1)> "
    "[click](javascript:alert(1)) ![p](https://evil.example/p.png) \u202egnp.exe\u202c "
    "\x1b[31mred</title></textarea></style><svg onload=alert(1)>"
)
