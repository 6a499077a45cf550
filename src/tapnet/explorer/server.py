"""The page's server: few paths, strict headers, and no client that can keep the others waiting."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.resources import files
from typing import Annotated, Any

import torch
import uvicorn
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tapnet.errors import SettingError, TapnetError
from tapnet.explorer.views import Choice, Explorer, GraphNotFoundError
from tapnet.files import printable

LARGEST_UPLOAD = 4 << 20  # bytes
WORKERS, WAITING = 2, 32  # threads that compute, and requests that may wait for them
WORK_SECONDS = 30.0  # a request's work, with the time that it waits for its turn
RECEIVE_SECONDS = 20.0  # an upload's way here
HEADER_SECONDS, IDLE_SECONDS = 10.0, 5  # the head of a request, and a connection between two of them
EXCHANGE_SECONDS = 60.0  # from a request's head to the last byte of its answer
LONGEST_MESSAGE = 500  # letters
MOST_CONNECTIONS = 500  # below the number of files that a process may have open

PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/picture.js": ("picture.js", "text/javascript; charset=utf-8"),
    "/favicon.svg": ("favicon.svg", "image/svg+xml"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


# ---- what is asked and answered ----


def make_app(explorer: Explorer, hosts: Iterable[str] | None = None) -> ASGIApp:
    """The page and what it asks for. ``hosts``: the names it may be called by; None: any."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    work = WorkerPool()
    for path, (name, kind) in PAGE.items():
        app.get(path)(_file(files("tapnet.explorer").joinpath("page", name).read_bytes(), kind))

    @app.get("/api/model")
    async def model() -> Response:
        return _json(explorer.model() | {"largest_upload": LARGEST_UPLOAD})

    @app.get("/api/graphs")
    async def graphs() -> Response:
        return await work.answer(explorer.graphs)

    @app.get("/api/predictions")
    async def predictions(first: int) -> Response:
        return await work.answer(explorer.predictions, first)

    @app.get("/api/graphs/{number}")
    async def graph(number: int, connectivity: Number = None, ratios: Ratios = None, places: bool = True) -> Response:
        return await work.answer(explorer.graph, number, _choice(connectivity, ratios), places)

    @app.post("/api/graph")
    async def uploaded(
        request: Request, name: FileName, connectivity: Number = None, ratios: Ratios = None, places: bool = True
    ) -> Response:
        choice, content = _choice(connectivity, ratios), await _body(request)
        return await work.answer(explorer.uploaded, name, content, choice, places)

    @app.exception_handler(AnyHTTPException)
    async def refused(_: Request, error: AnyHTTPException) -> Response:
        return _json({"error": str(error.detail)[:LONGEST_MESSAGE]}, error.status_code)

    @app.exception_handler(RequestValidationError)
    async def misunderstood(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _json({"error": f"{first['loc'][-1]}: {first['msg']}"}, 400)

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        return _json({"error": "something went wrong here; the terminal says more"}, 500)

    return SecurityMiddleware(app, hosts)


Number = Annotated[float | None, Query()]
Ratios = Annotated[str | None, Query(max_length=1000)]
FileName = Annotated[str, Query(min_length=1, max_length=200)]


def _choice(connectivity: float | None, ratios: str | None) -> Choice:
    """The sliders, out of an address: ratios with a point are shares, whole numbers are numbers of nodes."""
    try:
        values = [float(word) if "." in word else int(word) for word in ratios.split(",")] if ratios else None
    except ValueError:
        raise HTTPException(400, f"ratios are numbers with commas between, not {ratios!r}") from None
    return Choice(connectivity, None if values is None else tuple(values))


async def _body(request: Request) -> bytes:
    """An upload. One that is too large is read on for a while: who is still sending does not hear an answer."""

    async def read() -> bytes | None:
        found, size = bytearray(), 0
        async for part in request.stream():
            size += len(part)
            if size <= LARGEST_UPLOAD:
                found += part
            elif size > 8 * LARGEST_UPLOAD:
                break
        return bytes(found) if size <= LARGEST_UPLOAD else None

    try:
        content = await asyncio.wait_for(read(), RECEIVE_SECONDS)
    except asyncio.TimeoutError:
        raise HTTPException(408, f"the file did not arrive within {RECEIVE_SECONDS:.0f} seconds") from None
    except ClientDisconnect:
        raise HTTPException(400, "the file did not arrive whole") from None
    if content is None:
        raise HTTPException(413, f"the file is larger than {LARGEST_UPLOAD >> 20} MB")
    return content


class WorkerPool:
    """Whatever computes, away from the loop that talks to the clients: in few threads, with a bounded queue."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(WORKERS, "explore")
        self.waiting = 0

    async def answer(self, function: Callable[..., dict[str, Any]], *values: Any) -> Response:
        if self.waiting >= WAITING:
            raise HTTPException(503, "too many are asking at the moment; please try again")
        self.waiting += 1
        job = asyncio.get_running_loop().run_in_executor(self.pool, lambda: _packed(function(*values)))
        job.add_done_callback(self._done)
        try:
            return Response(await asyncio.wait_for(job, WORK_SECONDS), media_type="application/json")
        except asyncio.TimeoutError:
            raise HTTPException(503, f"that took longer than {WORK_SECONDS:.0f} seconds, so it was given up") from None
        except TapnetError as error:
            raise HTTPException(_status(error), str(error)) from None

    def _done(self, _: Any) -> None:
        self.waiting -= 1


def _status(error: TapnetError) -> int:
    if isinstance(error, GraphNotFoundError):
        return 404
    return 400 if isinstance(error, SettingError) else 422


def _packed(values: Any) -> bytes:
    return json.dumps(values, allow_nan=False, separators=(",", ":")).encode()


def _json(values: Any, status: int = 200) -> Response:
    return Response(_packed(values), status, media_type="application/json")


def _file(content: bytes, kind: str) -> Callable[[], Any]:
    async def answer() -> Response:
        return Response(content, media_type=kind)

    return answer


class SecurityMiddleware:
    """What every request passes: is it meant for this server, and does every answer keep the browser strict."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] | None) -> None:
        self.app, self.hosts = app, None if hosts is None else {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope["path"], headers)
        try:
            await (self.app if refusal is None else refusal)(scope, receive, strictly)
        except Exception as error:  # the visitor has his answer (`failed`); this line is for the terminal
            what = f"{scope['method']} {scope['path']!r}: {type(error).__name__}: {printable(error)}"
            print(f"tapnet: {what}", file=sys.stderr)

    def _refusal(self, path: str, headers: dict[bytes, str]) -> Response | None:
        """A page of another site may have a browser send requests here, under its own name or under ours."""
        host = headers.get(b"host", "").rpartition("@")[2].lower()
        name = host.partition("]")[0][1:] if host.startswith("[") else host.partition(":")[0]
        if self.hosts is not None and name not in self.hosts:
            return _json({"error": "this server is called by another name"}, 421)
        if path.startswith("/api") and headers.get(b"sec-fetch-site") in ("cross-site", "same-site"):
            return _json({"error": "requests from other sites are not answered"}, 403)
        return None


# ---- the server ----


class TimeoutProtocol(H11Protocol):
    """Ends a connection that is too slow at whatever it is: at asking, at sending a file or at reading the answer."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._allow(HEADER_SECONDS)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._allow(EXCHANGE_SECONDS)

    def on_response_complete(self) -> None:
        self._allow(HEADER_SECONDS)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _allow(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)


def listen(host: str, port: int) -> socket.socket:
    """A socket that already takes connections; they are answered as soon as the server runs."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise SettingError(f"cannot listen at {host}, port {port}: {why}; --port 0 takes any free one") from None


def address_of(listener: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:  # every address of this machine, so this one too
        return f"http://{'127.0.0.1' if address.version == 4 else '[::1]'}:{port}"
    return f"http://{host if address.version == 4 else f'[{host}]'}:{port}"


def make_server(explorer: Explorer, listener: socket.socket) -> uvicorn.Server:
    """Strict about the name it is called by where only this machine can reach it."""
    host = listener.getsockname()[0]
    names = ("localhost", "127.0.0.1", "::1", host) if ipaddress.ip_address(host).is_loopback else None
    config = uvicorn.Config(
        make_app(explorer, names),
        http=TimeoutProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def serve(explorer: Explorer, listener: socket.socket) -> None:
    """Answers until Ctrl-C."""
    torch.set_num_threads(1)  # a graph is small: threads inside its sums cost more than they give
    with suppress(KeyboardInterrupt):  # which is how one ends it
        make_server(explorer, listener).run([listener])
