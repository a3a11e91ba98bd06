"""What went wrong as it is answered: the status, and the words; never a traceback."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from uwfgit.errors import NotFoundError, UwfError
from uwfgit.web.serve.acts import Outcome
from uwfgit.web.serve.gate import Refusal


def refusal_of(request: Request, exc: Exception) -> Refusal:
    """Return what is answered where an error of ours or a wrong address ends it."""
    if isinstance(exc, UwfError):
        outcome = Outcome(code=1, error={"code": exc.code})
        return Refusal(
            status=outcome.http_status,
            code=exc.code,
            message=exc.message,
            hint=exc.hint,
        )
    assert isinstance(exc, HTTPException)  # noqa: S101 - handled for these two alone
    missing = NotFoundError("page", request.url.path)
    is_missing = exc.status_code == 404  # noqa: PLR2004 - not found
    return Refusal(
        status=exc.status_code,
        code="not-found",
        message=missing.message if is_missing else exc.detail,
    )


async def answer_error(request: Request, exc: Exception) -> Response:
    """Answer with an error as JSON."""
    refusal = refusal_of(request, exc)
    return JSONResponse(refusal.payload, status_code=refusal.status)
