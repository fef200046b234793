"""Options of the connection, for Python and for the command line."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import typer


def _option(name: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(name, help=help, metavar=metavar, rich_help_panel="Connection", **more)


Url = Annotated[str | None, _option("--url", "Address of the server.", "URL")]
ApiKeyFile = Annotated[str | None, _option("--api-key-file", "File with the API key.", "FILE")]
Username = Annotated[str | None, _option("--username", "User name.", "NAME")]
PasswordFile = Annotated[str | None, _option("--password-file", "File with the password.", "FILE")]
BearerTokenFile = Annotated[str | None, _option("--bearer-token-file", "File with a bearer token.", "FILE")]
AwsRegion = Annotated[
    str | None, _option("--aws-region", "Sign requests by AWS Signature Version 4, for this region.", "REGION")
]
AwsService = Annotated[
    str | None,
    _option(
        "--aws-service",
        "Sign requests for Amazon OpenSearch Service (es) or Serverless (aoss).",
        "NAME",
        show_default="from the host name",
    ),
]
AwsProfile = Annotated[
    str | None, _option("--aws-profile", "Sign requests with the credentials of this profile of AWS.", "NAME")
]
CaCerts = Annotated[str | None, _option("--ca-certs", "Certificates to trust (PEM).", "FILE")]
CertFingerprint = Annotated[
    str | None,
    _option("--cert-fingerprint", "Trust only the server or CA certificate with this SHA-256 fingerprint.", "HEX"),
]
ClientCert = Annotated[str | None, _option("--client-cert", "Client certificate (PEM).", "FILE")]
ClientKey = Annotated[
    str | None,
    _option("--client-key", "Key of the client certificate, if in a separate file (PEM).", "FILE"),
]
Insecure = Annotated[bool, _option("--insecure", "Do not verify the server's certificate.")]
Timeout = Annotated[float | None, _option("--timeout", "Seconds to wait for a response.", "SECONDS", show_default="60")]
Profile = Annotated[str | None, _option("--profile", "Named settings from the profile file.", "NAME")]


class ConnectionOptions(TypedDict, total=False):
    """The server, the credentials, and how to connect."""

    url: Url
    api_key_file: ApiKeyFile
    username: Username
    password_file: PasswordFile
    bearer_token_file: BearerTokenFile
    aws_region: AwsRegion
    aws_service: AwsService
    aws_profile: AwsProfile
    ca_certs: CaCerts
    cert_fingerprint: CertFingerprint
    client_cert: ClientCert
    client_key: ClientKey
    insecure: Insecure
    timeout: Timeout
    profile: Profile


CONNECTION_DEFAULTS: ConnectionOptions = {
    "url": None,
    "api_key_file": None,
    "username": None,
    "password_file": None,
    "bearer_token_file": None,
    "aws_region": None,
    "aws_service": None,
    "aws_profile": None,
    "ca_certs": None,
    "cert_fingerprint": None,
    "client_cert": None,
    "client_key": None,
    "insecure": False,
    "timeout": None,
    "profile": None,
}
