"""The trials of a study as a response that is sent while it is made: few of them are in memory at a time."""

from __future__ import annotations

import logging
from itertools import chain, islice

from starlette.responses import StreamingResponse
from starlette.types import Send

from dbcare.errors import DbcareError
from dbcare.live.export import TextFormat, format_trials
from dbcare.live.study import Study

LOG = logging.getLogger("dbcare")
MEDIA_TYPES: dict[TextFormat, str] = {"json": "application/json", "csv": "text/csv", "jsonl": "application/jsonl"}


class TrialStream(StreamingResponse):
    """All trials of a study; pieces are made in worker threads, and no more of them once the client has disconnected.

    The first trial is read at once, so that an error then is reported as usual. After a later one the connection is
    closed without the end of the response, so that no client takes it for complete.
    """

    def __init__(self, study: Study, kind: TextFormat) -> None:
        rows = study.trials()
        begun = chain(list(islice(rows, 1)), rows)
        super().__init__(format_trials(begun, kind), media_type=MEDIA_TYPES[kind])
        self.study = study

    async def stream_response(self, send: Send) -> None:
        """Send the pieces; if there is an error on the way, return without the end of the response."""
        try:
            await super().stream_response(send)
        except DbcareError as error:
            LOG.error("The export of study %r ended early: %s", self.study.name, error)
