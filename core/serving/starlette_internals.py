"""All that the app uses of Starlette's private parts, and its patches of them.

Streamlit's server is a Starlette app, and locks/web.txt pins Starlette. The rules are
those of streamlit_internals.py, which applies these patches with its own.
"""

from starlette.formparsers import MultiPartException, MultiPartParser

# Of an upload's header with the file's name, which browsers send twice. It has up to
# 255 characters of three bytes.
MOST_NAME_BYTES = 2_000
NO_FILE = "An upload has to be one file, as browsers send it."


def refuse_costly_uploads() -> None:
    """Refuse uploads of several parts, of a part that is no file, or with a long name.

    4 kB of semicolons in a part's header take the event loop 2 ms, and an upload may
    have 1,000 parts with a file, and as many without. A part that is no file is kept in
    memory, and decoded as a whole. The contents of files take the event loop little.
    """
    finish = MultiPartParser.on_headers_finished

    def on_headers_finished(parser: MultiPartParser) -> None:
        names = parser._current_part.content_disposition or b""
        if parser.items or len(names) > MOST_NAME_BYTES:
            raise MultiPartException(NO_FILE)
        finish(parser)
        if parser._current_part.file is None:
            raise MultiPartException(NO_FILE)

    MultiPartParser.on_headers_finished = on_headers_finished  # type: ignore[assignment, method-assign]


PATCHES = (refuse_costly_uploads,)
