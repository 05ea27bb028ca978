"""Signed tokens (JWT) instead of passwords: whoever holds the private key lets devices in; brokers need not know them.

A broker has public keys only. The kind of a key says how a token must be signed; what the token says of that is never
believed. So `alg: none`, or a public key that is taken for a shared secret, is a signature like any other wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from godwit.errors import GodwitError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

TOKEN_BYTES_MAX = 8_192
SUBJECT = re.compile(r"[\w.@~-]{1,128}")
"""Whom a token may name: the name stands in topics and conditions of grants, where it must mean nothing but itself."""

CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
RSA_BITS_MIN = 2_048
LEEWAY_S = 30.0
"""How far the clock of whoever signs may be from the broker's."""


class TokenError(GodwitError, ValueError):
    """A token that lets nobody in, or a file that is no key; the text says why."""


class UnsignedError(TokenError):
    """No key of ours has signed it, so that nothing it says is known to be true."""


class Bearer(NamedTuple):
    """Whom a token names, and until when."""

    name: str
    until_s: float
    """Seconds since 1970."""


def looks_signed(password: bytes | None) -> bool:
    """Whether somebody means this to be a token: three parts, the first a JSON object in base64."""
    return password is not None and password.startswith(b"eyJ") and password.count(b".") == 2


class Signer:
    """Those who may sign tokens, by their public keys."""

    def __init__(self, files: Sequence[Path], audience: str, issuer: str = "") -> None:
        self.audience = audience
        self.issuer = issuer
        self._keys = [(key, [algorithm_of(key, path)]) for path in files for key in (_public(path),)]

    def bearer(self, token: bytes) -> Bearer:
        """Who shows this token; `UnsignedError` where nobody of these has signed it, `TokenError` where it is not for
        this broker, or not for now."""
        if len(token) > TOKEN_BYTES_MAX:
            raise UnsignedError(f"a token of {len(token):,} bytes; right would be {TOKEN_BYTES_MAX:,} at most")
        for key, algorithms in self._keys:
            claims = self._claims(token, key, algorithms)
            if claims is not None:
                name = claims["sub"]
                if not SUBJECT.fullmatch(name):
                    raise TokenError("the token's subject may have letters, digits and ._~@- only, 128 at most")
                return Bearer(name, float(claims["exp"]))
        raise UnsignedError("the token is not signed by a key that this broker knows")

    def _claims(self, token: bytes, key: PublicKeyTypes, algorithms: list[str]) -> dict[str, Any] | None:
        """What it says, where this key has signed it."""
        import jwt  # with what it needs a twentieth of a second, which brokers without tokens need not spend

        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,  # type: ignore[arg-type]
                algorithms,
                options={"require": ["exp", "sub", "aud"]},
                audience=self.audience,
                issuer=self.issuer or None,
                leeway=LEEWAY_S,
            )
        except jwt.ExpiredSignatureError:
            raise TokenError("the token has expired") from None
        except (jwt.ImmatureSignatureError, jwt.InvalidIssuedAtError):
            raise TokenError("the token does not hold yet") from None
        except jwt.InvalidAudienceError:
            raise TokenError(f"the token is for somebody else; its audience must be {self.audience!r}") from None
        except jwt.InvalidIssuerError:
            raise TokenError(f"the token is of somebody else; its issuer must be {self.issuer!r}") from None
        except jwt.MissingRequiredClaimError as error:
            raise TokenError(f"the token lacks `{error.claim}`") from None
        except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError, jwt.DecodeError):
            return None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            raise TokenError("the token says something that cannot be") from None
        return claims


def algorithm_of(key: object, path: Path) -> str:
    """How tokens for this key are signed: there is one way for each kind of key."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, ed25519.Ed25519PublicKey | ed25519.Ed25519PrivateKey):
        return "EdDSA"
    if isinstance(key, ec.EllipticCurvePublicKey | ec.EllipticCurvePrivateKey) and key.curve.name in CURVES:
        return CURVES[key.curve.name]
    if isinstance(key, rsa.RSAPublicKey | rsa.RSAPrivateKey) and key.key_size >= RSA_BITS_MIN:
        return "RS256"
    raise TokenError(f"{path}: right would be a key of Ed25519, P-256, P-384, P-521, or RSA with {RSA_BITS_MIN} bits")


def _public(path: Path) -> PublicKeyTypes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        return load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise TokenError(f"{path}: {error.strerror}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise TokenError(f"{path}: right would be a public key in PEM; `godwit token keys` makes a pair") from None


def make_keys(private: Path, public: Path) -> None:
    """A pair of Ed25519 in two new files; only their user may read the private one."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    try:
        private.touch(0o600, exist_ok=False)
        public.touch(exist_ok=False)
    except FileExistsError as error:
        raise TokenError(f"{error.filename}: is there already, and devices may depend on it") from None
    except OSError as error:
        raise TokenError(f"{error.filename}: {error.strerror}") from None
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def signed(private: Path, name: str, *, audience: str, issued_s: float, until_s: float, issuer: str = "") -> str:
    """A token for this name, by the private key in that file."""
    import jwt
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if not SUBJECT.fullmatch(name):
        raise TokenError(f"{name!r}: right would be letters, digits and ._~@- only, 128 at most")
    try:
        key = load_pem_private_key(private.read_bytes(), None)
    except OSError as error:
        raise TokenError(f"{private}: {error.strerror}") from None
    except (ValueError, TypeError):
        raise TokenError(f"{private}: right would be a private key in PEM without a passphrase") from None
    claims: dict[str, Any] = {"sub": name, "aud": audience, "iat": int(issued_s), "exp": int(until_s)}
    if issuer:
        claims["iss"] = issuer
    return jwt.encode(claims, key, algorithm_of(key, private))  # type: ignore[arg-type]
