"""The HTTP server of the page: a few paths, strict headers, and limits on size and time for every client."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import mimetypes
import re
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated, Any

import torch
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tapnet.errors import SettingError, TapnetError
from tapnet.explorer.results import PictureNotFoundError, Results
from tapnet.explorer.upload import parsers
from tapnet.explorer.views import Choice, Explorer, GraphNotFoundError
from tapnet.files import printable
from tapnet.inference.attribution import DEFAULT_METHOD, Method

LARGEST_UPLOAD = 4 << 20  # bytes
WORKERS, WAITING = 2, 32  # threads that compute, of graphs and of uploads, and requests that may wait for each
WORK_SECONDS = 30.0  # for computing an answer, including the time in the queue
RECEIVE_SECONDS = 20.0  # for receiving an upload
HEADER_SECONDS, IDLE_SECONDS = 10.0, 5  # for receiving a request's headers, and between two requests
EXCHANGE_SECONDS = 60.0  # from a request's headers to the last byte of the response
LONGEST_MESSAGE = 500  # characters
MOST_CONNECTIONS = 500  # below the number of files that a process may have open

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
# With "nosniff" a browser runs no script of another type, and the registry of Windows may name any.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("text/css", ".css")


# ---- the application ----


async def _choice(
    connectivity: float | None = None, ratios: Annotated[str | None, Query(max_length=1000)] = None
) -> Choice:
    """The sliders' values in a query: a ratio with a decimal point is a share, without one a number of nodes."""
    try:
        values = tuple(float(word) if "." in word else int(word) for word in ratios.split(",")) if ratios else None
    except ValueError:
        raise HTTPException(400, f"ratios must be comma-separated numbers, not {ratios!r}") from None
    return Choice(connectivity, values)


async def _without(without: Annotated[str | None, Query(max_length=1000)] = None) -> tuple[int, ...]:
    """The nodes in a query that are taken away."""
    try:
        return tuple(dict.fromkeys(int(word) for word in without.split(","))) if without else ()
    except ValueError:
        raise HTTPException(400, f"without must be comma-separated numbers of nodes, not {without!r}") from None


async def _client(request: Request) -> str:
    """The address that a request comes from."""
    return request.client.host if request.client else ""


Client = Annotated[str, Depends(_client)]
Sliders = Annotated[Choice, Depends(_choice)]
Without = Annotated[tuple[int, ...], Depends(_without)]
FileName = Annotated[str, Query(min_length=1, max_length=200)]
SearchText = Annotated[str, Query(max_length=100)]


def make_app(
    explorer: Explorer | None,
    hosts: Iterable[str] | None = None,
    any_address: bool = False,
    results: Results | None = None,
) -> ASGIApp:
    """Make the web application: the page and the JSON interface that it calls.

    Args:
        explorer: The model and the data set to show; None shows results alone.
        hosts: The host names and addresses that requests may be sent to; None allows all.
        any_address: Whether they may be sent to any IP address, too.
        results: A stored comparison or run to show.

    Returns:
        The application, for uvicorn or another ASGI server.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    if explorer is not None:
        _add_graphs(app, explorer, results is not None)
    if results is not None:
        _add_results(app, results, alone=explorer is None)

    @app.exception_handler(StarletteHTTPException)
    async def refused(_: Request, error: StarletteHTTPException) -> Response:
        return _json({"error": str(error.detail)[:LONGEST_MESSAGE]}, error.status_code)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _json({"error": f"{first['loc'][-1]}: {first['msg']}"}, 400)

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        return _json({"error": "internal error; the terminal shows more"}, 500)

    # Last, as it matches every path. Some installers link files instead of copying them.
    app.mount("/", StaticFiles(packages=[("tapnet.explorer", "page")], html=True, follow_symlink=True))
    return SecurityMiddleware(app, hosts, any_address)


def _add_graphs(app: FastAPI, explorer: Explorer, has_results: bool) -> None:
    # uploads and attributions, which take long, wait for each other
    workers, upload_workers, attribution_workers = (WorkerPool(WORKERS) for _ in range(3))

    @app.get("/api/model")
    async def model() -> Response:
        return _json(explorer.model() | {"largest_upload": LARGEST_UPLOAD, "results": has_results})

    @app.get("/api/graphs")
    async def graphs(client: Client) -> Response:
        return await workers.answer(client, explorer.graphs)

    @app.get("/api/predictions")
    async def predictions(client: Client, first: int) -> Response:
        return await workers.answer(client, explorer.predictions, first)

    @app.get("/api/search")
    async def search(client: Client, text: SearchText) -> Response:
        return await workers.answer(client, explorer.names.search, text)

    @app.get("/api/graphs/{number}")
    async def graph(client: Client, number: int, sliders: Sliders, without: Without, places: bool = True) -> Response:
        return await workers.answer(client, explorer.graph, number, sliders, places, without)

    @app.get("/api/graphs/{number}/attribution")
    async def attribution(client: Client, number: int, sliders: Sliders, method: Method = DEFAULT_METHOD) -> Response:
        return await attribution_workers.answer(client, explorer.attribution, number, method, sliders)

    @app.post("/api/graph")
    async def uploaded(
        client: Client, request: Request, name: FileName, sliders: Sliders, without: Without, places: bool = True
    ) -> Response:
        content = await _body(request)
        return await upload_workers.answer(client, explorer.uploaded, name, content, sliders, places, without)

    @app.post("/api/attribution")
    async def uploaded_attribution(
        client: Client, request: Request, name: FileName, sliders: Sliders, method: Method = DEFAULT_METHOD
    ) -> Response:
        content = await _body(request)
        return await attribution_workers.answer(client, explorer.uploaded_attribution, name, content, method, sliders)


def _add_results(app: FastAPI, results: Results, alone: bool) -> None:
    workers = WorkerPool(WORKERS)

    @app.get("/api/results")
    async def shown(client: Client) -> Response:
        return await workers.answer(client, lambda: results.view() | {"graphs": not alone})

    @app.get("/api/results/pictures/{name}")
    async def picture(client: Client, name: str) -> Response:
        return await workers.answer(client, results.picture, name, respond=_svg)

    if alone:

        @app.get("/")
        async def start() -> Response:
            return RedirectResponse("/results.html")


async def _body(request: Request) -> bytes:
    """The uploaded file. Too large a file is read on for a while: a client that still sends misses the response."""

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
        raise HTTPException(400, "the upload ended before the whole file had arrived") from None
    if content is None:
        raise HTTPException(413, f"the file is larger than {LARGEST_UPLOAD >> 20} MB")
    return content


def _json(values: Any, status: int = 200) -> Response:
    """In ASCII: names in a user's file may hold surrogates, which UTF-8 does not encode."""
    content = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return Response(content, status, media_type="application/json")


def _svg(content: bytes) -> Response:
    return Response(content, media_type="image/svg+xml")


class WorkerPool:
    """A few threads, which keep computations off the event loop; clients that wait for one take turns.

    Args:
        threads: How many requests are answered at a time.
    """

    def __init__(self, threads: int) -> None:
        self._threads, self._free = ThreadPoolExecutor(threads, "explore"), threads
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}  # of each client that waits, the next one first

    async def answer(
        self, client: str, function: Callable[..., Any], *values: Any, respond: Callable[[Any], Response] = _json
    ) -> Response:
        """Call ``function(*values)`` in a thread and respond with its result.

        Args:
            client: Who asks. Where the queue is full, the client who has the most requests in it loses one.
            function: What computes the result.
            *values: Its arguments.
            respond: What makes a response of the result; by default as JSON.

        Raises:
            HTTPException: The queue is full, the time is up, or the function raised a :class:`TapnetError`.
        """
        try:
            return await asyncio.wait_for(self._run(client, lambda: respond(function(*values))), WORK_SECONDS)
        except asyncio.TimeoutError:
            raise HTTPException(503, f"no result within {WORK_SECONDS:.0f} seconds") from None
        except TapnetError as error:
            raise HTTPException(_status(error), str(error)) from None

    async def _run(self, client: str, work: Callable[[], Response]) -> Response:
        loop = asyncio.get_running_loop()
        if self._free:
            self._free -= 1
        else:
            await self._turn(client)

        def done(_: object) -> None:
            with suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(self._release)

        job = self._threads.submit(work)
        job.add_done_callback(done)  # of the thread's work, which goes on if nobody waits for it any more
        return await asyncio.wrap_future(job)

    async def _turn(self, client: str) -> None:
        """Wait until a thread is free and it is this client's turn."""
        if sum(map(len, self._queues.values())) >= WAITING:
            longest = max(self._queues.values(), key=len)
            busy = HTTPException(503, "the server is busy; please try again")
            if len(longest) <= len(self._queues.get(client, ())) + 1:
                raise busy
            if not (last := longest.pop()).done():
                last.set_exception(busy)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(client, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # a thread was given to it at the same time
                self._release()
            else:
                self._leave(client, turn)
            raise

    def _leave(self, client: str, turn: asyncio.Future[None]) -> None:
        waiting = self._queues.get(client, deque())
        with suppress(ValueError):
            waiting.remove(turn)
        if not waiting:
            self._queues.pop(client, None)

    def _release(self) -> None:
        """Give the thread to the client whose turn it is."""
        while self._queues:
            client = next(iter(self._queues))
            waiting = self._queues.pop(client)
            turn = waiting.popleft()
            if waiting:
                self._queues[client] = waiting  # behind the others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


def _status(error: TapnetError) -> int:
    if isinstance(error, GraphNotFoundError | PictureNotFoundError):
        return 404
    return 400 if isinstance(error, SettingError) else 422


class SecurityMiddleware:
    """Refuses requests that other sites make a browser send, and adds strict headers to every response.

    The host check is not Starlette's ``TrustedHostMiddleware``: that refuses in plain text, and its versions before
    August 2026 refuse every IPv6 host.

    Args:
        app: The application behind it.
        hosts: The host names and addresses that requests may be sent to; None allows all.
        any_address: Whether they may be sent to any IP address, too: what DNS rebinding needs is a name.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] | None, any_address: bool = False) -> None:
        self._app, self._any_address = app, any_address
        self._hosts = None if hosts is None else {f"[{host}]" if ":" in host else host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request or pass it on; an error of the application is printed in the terminal."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_strict(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope["path"], Headers(scope=scope))
        try:
            await (refusal or self._app)(scope, receive, send_strict)
        except Exception as error:  # the client has its response (`failed`); this line is for the terminal
            what = f"{scope['method']} {scope['path']!r}: {type(error).__name__}: {printable(error)}"
            print(f"tapnet: {what}", file=sys.stderr)

    def _refusal(self, path: str, headers: Headers) -> Response | None:
        """Another site's page can reach this server under its own name (DNS rebinding) or under ours."""
        host = re.sub(r":\d*$", "", headers.get("host", "").lower())  # without the port
        if self._hosts is not None and host not in self._hosts and not (self._any_address and _is_address(host)):
            return _json({"error": "the request names a host that is not this server"}, 421)
        if path.startswith("/api") and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return _json({"error": "requests from other sites are refused"}, 403)
        if "\0" in path:  # which older versions of Starlette give to the file system
            return _json({"error": "not found"}, 404)
        return None


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        address = ipaddress.ip_address(re.sub(r"^\[(.*)\]$", r"\1", host))
        return (address.version == 6) == host.startswith("[")
    return False


# ---- the server ----


class TimeoutProtocol(H11Protocol):
    """Closes a connection that takes too long to send its request or its file, or to read the response."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Allow ``HEADER_SECONDS`` for the first request."""
        super().connection_made(transport)
        self._set_deadline(HEADER_SECONDS)

    def handle_events(self) -> None:
        """Allow ``EXCHANGE_SECONDS`` once a request's headers are here."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._set_deadline(EXCHANGE_SECONDS)

    def on_response_complete(self) -> None:
        """Allow ``HEADER_SECONDS`` for the next request."""
        self._set_deadline(HEADER_SECONDS)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the deadline."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _set_deadline(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that queues connections until the server runs.

    Args:
        host: A host name or address of this machine.
        port: A port; 0 takes any free one.

    Returns:
        The listening socket.

    Raises:
        SettingError: The address is not one of this machine, or the port is taken or not allowed.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise SettingError(f"cannot listen at {host}, port {port}: {why}; port 0 takes any free one") from None


def address_of(listener: socket.socket) -> str:
    """The URL at which a browser on this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:  # it listens at every address of this machine
        return f"http://{'127.0.0.1' if address.version == 4 else '[::1]'}:{port}"
    return f"http://{host if address.version == 4 else f'[{host}]'}:{port}"


def make_server(
    explorer: Explorer | None,
    listener: socket.socket,
    allow_hosts: Iterable[str] = (),
    results: Results | None = None,
) -> uvicorn.Server:
    """Make the server of the page.

    It answers requests that are sent to this machine's own names, to the given ones and, if other machines can reach
    it, to IP addresses.

    Args:
        explorer: The model and the data set to show; None shows results alone.
        listener: The socket of :func:`listen`.
        allow_hosts: Other names of this machine that requests may be sent to.
        results: A stored comparison or run to show.

    Returns:
        A server whose ``run([listener])`` answers requests until ``should_exit`` is set.
    """
    host = listener.getsockname()[0]
    is_public = not ipaddress.ip_address(host).is_loopback
    names = {"localhost", "127.0.0.1", "::1", host, *allow_hosts, *([socket.gethostname()] if is_public else [])}
    config = uvicorn.Config(
        make_app(explorer, names, any_address=is_public, results=results),
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


def serve(
    explorer: Explorer | None,
    listener: socket.socket,
    allow_hosts: Iterable[str] = (),
    results: Results | None = None,
) -> None:
    """Answer requests until Ctrl-C.

    Args:
        explorer: The model and the data set to show; None shows results alone.
        listener: The socket of :func:`listen`.
        allow_hosts: Other names of this machine that requests may be sent to.
        results: A stored comparison or run to show.
    """
    torch.set_num_threads(1)  # for a single graph, several threads cost more time than they save
    if explorer is not None:
        threading.Thread(target=parsers.start, daemon=True).start()
    try:
        with suppress(KeyboardInterrupt):
            make_server(explorer, listener, allow_hosts, results).run([listener])
    finally:
        parsers.close()
