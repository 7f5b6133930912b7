"""TLS between app, scheduler and workers, by a folder that deploy/certificates made.

Who has a certificate of the same authority is let in, and nobody else is.
"""

import os
from pathlib import Path

from distributed import Security

from core.errors import ExplainedError

FILES = ("ca.pem", "cert.pem", "key.pem")


def security(address: str | None = None, folder: str | None = None) -> Security:
    """How to be a scheduler, or to reach the one at an address: with a folder, by TLS.

    Without one, that of DASK_CERTIFICATES; without that, as Dask's own settings say.
    ExplainedError where that can't be done.
    """
    folder = folder or os.environ.get("DASK_CERTIFICATES")
    found = _of(folder) if folder else Security()
    if address and found.require_encryption and not address.startswith("tls://"):
        raise ExplainedError(
            f"With certificates the scheduler's address begins with tls://: "
            f"{address} does not."
        )
    has_some = found.get_tls_config_for_role("client")["ca_file"]
    if address and address.startswith("tls://") and not has_some:
        raise ExplainedError(
            f"The scheduler at {address} asks for a certificate. Name the folder with "
            "this machine's in DASK_CERTIFICATES; deploy/certificates makes it."
        )
    return found


def _of(folder: str) -> Security:
    authority, certificate, key = (Path(folder, name).absolute() for name in FILES)
    for file in (authority, certificate, key):
        if not os.access(file, os.R_OK):
            raise ExplainedError(
                f"{file} is not there, or can't be read. deploy/certificates makes a "
                f"folder with {', '.join(FILES)} for each machine."
            )
    if os.name == "posix" and key.stat().st_mode & 0o077:
        raise ExplainedError(
            f"Others on this machine can read the key {key}. If nobody has: "
            f"chmod 600 {key}; else make new certificates."
        )
    roles = ("scheduler", "worker", "client")
    found = Security(
        require_encryption=True,
        tls_ca_file=str(authority),
        **{f"tls_{role}_cert": str(certificate) for role in roles},
        **{f"tls_{role}_key": str(key) for role in roles},
    )
    try:
        found.get_connection_args("client")
    except OSError as error:  # of ssl, too
        raise ExplainedError(
            f"The certificates in {folder} can't be used: {error}. "
            "deploy/certificates makes new ones."
        ) from None
    return found
