"""The editor served: every answer is the text, and what is seen of it now."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import anyio.to_thread
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from uwfgit.engine.decide.conditions import find_syntax_error
from uwfgit.errors import InvalidError, UwfError
from uwfgit.model.picture.chart import chart_of_document
from uwfgit.model.workflow.include import open_includes
from uwfgit.model.workflow.source import check_workflow_text
from uwfgit.model.yaml.core import read_yaml
from uwfgit.web.edit.acting import act_on
from uwfgit.web.edit.files import Desk, Opened
from uwfgit.web.edit.redraw import read_drawn
from uwfgit.web.render.editor import Draft, all_of, editor_page
from uwfgit.web.serve.pages import read_form
from uwfgit.web.serve.site import EDIT_ROOT, Place, Serving

_TEXT: Final = 900_000


class Editor(Struct, frozen=True, kw_only=True):
    """The handlers of the editor's pages."""

    serving: Serving
    place: Place
    desk: Desk

    def routes(self) -> list[Route]:
        """Return the routes below ``/edit``."""
        return [
            Route("/{name}", self.show, methods=["GET"]),
            Route("/{name}", self.act, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """A file as it is on disk."""
        opened = await anyio.to_thread.run_sync(
            self.desk.open, request.path_params["name"]
        )
        draft = await self._draft(opened, opened.text)
        return self._page(draft)

    async def act(self, request: Request) -> Response:
        """Check the text, change it as a button says, or save it."""
        fields = await read_form(request, self.serving, self.place)
        opened = await anyio.to_thread.run_sync(
            self.desk.open, request.path_params["name"]
        )
        draft = await self._done(opened, fields)
        if request.headers.get("x-uwf-part"):
            return JSONResponse(all_of(draft))
        return self._page(draft)

    def _page(self, draft: Draft) -> Response:
        site = self.serving.site(self.place)
        status = 409 if draft.is_bad else 200
        page = editor_page(site, draft, f"{EDIT_ROOT}/{draft.name}")
        return HTMLResponse(page, status_code=status)

    async def _done(self, opened: Opened, fields: Mapping[str, str]) -> Draft:
        text, was = fields.get("text", "").replace("\r\n", "\n"), fields.get("was", "")
        if len(text) > _TEXT:
            raise InvalidError(f"the text has more than {_TEXT:,} characters")
        act, said, is_bad = fields.get("act", "check"), "", False
        try:
            if act == "save":
                save = partial(self.desk.save, opened.name, text, was=was)
                was = (await anyio.to_thread.run_sync(save)).mark
                said = "saved"
            elif act != "check":
                change = partial(act_on, text, act, fields)
                text = await anyio.to_thread.run_sync(change)
        except UwfError as exc:
            said = f"{exc.message}; {exc.hint}" if exc.hint else exc.message
            is_bad = True
        return await self._draft(opened, text, was=was, said=said, is_bad=is_bad)

    async def _draft(
        self,
        opened: Opened,
        text: str,
        *,
        was: str | None = None,
        said: str = "",
        is_bad: bool = False,
    ) -> Draft:
        look = partial(look_at, opened, text)
        draft = await anyio.to_thread.run_sync(look)
        return Draft(
            name=opened.name,
            text=text,
            was=opened.mark if was is None else was,
            chart=draft.chart,
            drawn=draft.drawn,
            problems=draft.problems,
            said=said,
            is_bad=is_bad,
        )


def look_at(opened: Opened, text: str) -> Draft:
    """Read a text as the command line would, were it in the file."""
    data, folder = text.encode(), opened.path.parent
    includes = open_includes(opened.path)
    located, _ = read_yaml(data, file=str(opened.path), include=includes)
    return Draft(
        name=opened.name,
        text=text,
        was=opened.mark,
        chart=chart_of_document(located.value) if located is not None else None,
        drawn=read_drawn(text),
        problems=check_workflow_text(
            data,
            folder=folder,
            file=opened.path,
            find_syntax_error=find_syntax_error,
        ),
    )
