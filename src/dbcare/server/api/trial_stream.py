"""The trials of a study as a response that is sent while it is made: few of them are in memory at a time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from itertools import chain, islice

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Send

from dbcare.errors import DbcareError
from dbcare.studies.show.export import TextFormat, format_trials
from dbcare.studies.study import Study

LOG = logging.getLogger("dbcare")
MEDIA_TYPES: dict[TextFormat, str] = {"json": "application/json", "csv": "text/csv", "jsonl": "application/jsonl"}


class TrialStream(StreamingResponse):
    """All trials of a study; each piece is made in a turn of its own, and none once the client has disconnected.

    The first trial is read at once, so that an error then is reported as usual. After a later one the connection is
    closed without the end of the response, so that no client takes it for complete.
    """

    def __init__(
        self, study: Study, kind: TextFormat, take_turn: Callable[[], AbstractAsyncContextManager[None]]
    ) -> None:
        rows = study.trials()
        begun = chain(list(islice(rows, 1)), rows)
        super().__init__(_make_in_turns(format_trials(begun, kind), take_turn), media_type=MEDIA_TYPES[kind])
        self.study = study

    async def stream_response(self, send: Send) -> None:
        """Send the pieces; if there is an error on the way, return without the end of the response."""
        try:
            await super().stream_response(send)
        except DbcareError as error:
            LOG.error("The export of study %r ended early: %s", self.study.name, error)


async def _make_in_turns(
    pieces: Iterator[str], take_turn: Callable[[], AbstractAsyncContextManager[None]]
) -> AsyncIterator[str]:
    while True:
        async with take_turn():
            piece = await run_in_threadpool(next, pieces, None)
        if piece is None:
            return
        yield piece
