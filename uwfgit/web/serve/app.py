"""All routes of a server behind the one gate, and what errors look like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Final, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from uwfgit.errors import UwfError
from uwfgit.web.render.forms.refused import problem_page
from uwfgit.web.serve.api import Api
from uwfgit.web.serve.gate import Gate
from uwfgit.web.serve.pages import Pages
from uwfgit.web.serve.site import EDIT_ROOT, FAR_ROOT, Served, Serving
from uwfgit.web.serve.told import answer_error, refusal_of

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_FAR = "Not reached"
_TITLES: Final = {404: "Not found", 502: _FAR, 503: _FAR, 504: _FAR}
_WELCOME: Final = (
    "<!doctype html><meta charset=utf-8><title>uwf</title>"
    '<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0;url=/">'
    '<p><a href="/">Go on</a></p>\n'
)
_SPENT: Final = (
    "This address was used before, or is older than a minute. Print a new one with: "
    "uwf web link --port {port}\n"
)


def make_app(serving: Serving) -> ASGIApp:
    """Build the server's application."""
    first, *others = serving.stores
    routes = [
        Route("/", _Home(serving).home, methods=["GET"]),
        Route("/enter", _Home(serving).enter, methods=["GET"]),
        Route("/welcome", _Home(serving).welcome, methods=["GET"]),
        Route(
            "/static/style.css", _static("uwfgit.web.render", "style.css", "text/css")
        ),
        Route(
            "/static/web.js", _static("uwfgit.web.serve", "web.js", "text/javascript")
        ),
        *(serving.elsewhere.routes() if serving.elsewhere is not None else ()),
        Mount("/api", routes=_api_routes(serving)),
        *_editor_routes(serving, first),
        *_far_pages(serving),
        *(
            Mount(each.shelf.root, routes=_pages(serving, each).routes())
            for each in others
        ),
        *_pages(serving, first).routes(),
    ]
    errors = _Errors(serving)
    app = Starlette(
        routes=routes,
        exception_handlers={UwfError: errors.answer, HTTPException: errors.answer},
        lifespan=_life(serving),
    )
    app.router.redirect_slashes = False
    return Gate(app, serving.rules, on_bug=serving.on_bug)


def _pages(serving: Serving, served: Served) -> Pages:
    return Pages(serving, lambda _: served.place)


def _far_pages(serving: Serving) -> list[Mount]:
    elsewhere = serving.elsewhere
    if elsewhere is None:
        return []
    pages = Pages(serving, lambda asked: elsewhere.place(asked.path_params["client"]))
    return [Mount(f"{FAR_ROOT}/{{client}}", routes=pages.routes())]


def _editor_routes(serving: Serving, first: Served) -> list[Mount]:
    desk = serving.desk
    if desk is None:
        return []

    @cache
    def router() -> Router:
        # All that checks workflow files: too much for servers that never edit one.
        from uwfgit.web.serve.editor import Editor  # noqa: PLC0415 - see above

        editor = Editor(serving=serving, place=first.place, desk=desk)
        return Router(routes=editor.routes(), redirect_slashes=False)

    async def edit(scope: Scope, receive: Receive, send: Send) -> None:
        await router()(scope, receive, send)

    return [Mount(EDIT_ROOT, app=edit)]


def _api_routes(serving: Serving) -> list[Route | Mount]:
    first, *others = serving.stores
    shapes = serving.shapes
    mounts = [
        Mount(each.shelf.root, routes=Api(shapes, each).routes()) for each in others
    ]
    return [*mounts, *Api(shapes, first).routes()]


class _Home:
    """The way in."""

    def __init__(self, serving: Serving) -> None:
        self.keys = serving.rules.keys
        self.hosts = serving.rules.hosts
        self.start = f"{serving.stores[0].shelf.root}/threads"

    async def home(self, request: Request) -> Response:
        """Lead to the first store's threads."""
        del request
        return RedirectResponse(self.start, status_code=303)

    async def enter(self, request: Request) -> Response:
        """Take a code, give the cookie, and lead on to an address without the code."""
        if not self.keys.take_code(request.query_params.get("code", "")):
            said = _SPENT.format(port=self.keys.port)
            return PlainTextResponse(said, status_code=403)
        answer = RedirectResponse("/welcome", status_code=303)
        answer.set_cookie(
            self.keys.cookie_name,
            self.keys.cookie,
            httponly=True,
            secure=request.headers["host"].lower() == self.hosts.public,
            samesite="strict",
            path="/",
        )
        return answer

    async def welcome(self, request: Request) -> Response:
        """Go on from an address of ours: only then does a strict cookie come along."""
        del request
        return HTMLResponse(_WELCOME)


def _static(package: str, name: str, kind: str) -> Handler:
    data = (files(package) / name).read_bytes()

    async def give(request: Request) -> Response:
        del request
        return Response(data, media_type=kind)

    return give


class _Errors:
    """Errors as pages, or as JSON for the API."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving

    async def answer(self, request: Request, exc: Exception) -> Response:
        """Answer with what went wrong."""
        if request.url.path.startswith("/api"):
            return await answer_error(request, exc)
        refusal = refusal_of(request, exc)
        first, *others = (each.place for each in self.serving.stores)
        path = request.url.path
        mine = (each for each in others if path.startswith(f"{each.root}/"))
        site = self.serving.site(next(mine, first))
        usual = _TITLES.get(refusal.status, "Not done")
        title = "Damaged" if refusal.code == "corrupt" else usual
        page = problem_page(
            site, title, [refusal.message], refusal.hint, site.links.threads()
        )
        return HTMLResponse(page, status_code=refusal.status)


def _life(serving: Serving) -> Lifespan[Starlette]:
    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        del app
        try:
            yield
        finally:
            for each in serving.stores:
                each.shelf.close()

    return life
