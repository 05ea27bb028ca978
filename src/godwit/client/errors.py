"""What may go wrong for a client, and how it is put into words."""

from __future__ import annotations

import os
import re
import socket
import ssl

from godwit.errors import GodwitError

NO_SUCH_NAME = {
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY") if hasattr(socket, name)
}
"""What the resolver says of names that nobody has. A machine without a network gets another answer, and tries again."""

_ERRNO = re.compile(r"\[Errno (\d+)\]")


class ClientError(GodwitError):
    """What was asked for is refused, or cannot be."""


class RefusedError(ClientError):
    """A broker has refused it; `reason` is MQTT's reason code."""

    def __init__(self, text: str, reason: int = 128) -> None:
        super().__init__(text)
        self.reason = reason


class UnreachableError(ClientError):
    """No broker can be reached, or not the one that was asked for."""


class TakenOverError(ClientError):
    """Another program has connected under the name of this client, and has its session now."""


class BusyError(ConnectionError):
    """A broker does not let us in now; another may, or this one later."""


def is_final(error: Exception) -> bool:
    """Whether trying once more is of no use: the name is nobody's, or the two sides do not trust each other."""
    if isinstance(error, ssl.SSLError | UnicodeError):
        return True  # the latter says that a name cannot even be asked for
    return isinstance(error, socket.gaierror) and error.errno in NO_SUCH_NAME


def why(error: Exception, connect_s: float) -> str:
    """Why a broker cannot be reached, in words."""
    match error:
        case TimeoutError() if not error.errno:
            return str(error) or f"no answer within {connect_s:g} s"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError():
            known = getattr(error, "reason", None)  # those that we made ourselves have none
            reason = known.lower().replace("_", " ") if known else str(error)
            return f"TLS: {reason}{'; does it speak TLS there?' if 'wrong version' in reason else ''}"
        case UnicodeError():
            return "the name cannot be resolved: it is none"
        case socket.gaierror():
            return f"the name cannot be resolved: {error.strerror}"
        case BusyError():
            return str(error)
        case ConnectionResetError():
            return str(error) if error.args and not error.errno else "it has hung up; does it speak TLS there?"
    found = _ERRNO.search(str(error))
    number = error.errno if isinstance(error, OSError) and error.errno else int(found[1]) if found else 0
    return os.strerror(number).lower() if number else str(error) or type(error).__name__
