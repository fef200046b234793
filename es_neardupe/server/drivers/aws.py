"""Requests signed by AWS Signature Version 4, for Amazon OpenSearch Service and Serverless."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

from es_neardupe.errors import ConnectError, SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.server.drivers.driver import Driver, ForwardingDriver
from es_neardupe.server.login.settings import AwsLogin
from es_neardupe.server.responses import Answer
from es_neardupe.wording import option

try:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session
except ImportError:
    raise SettingsError(f"Signatures of AWS need the package botocore: {install_extra('aws')}") from None


class SignedDriver(ForwardingDriver):
    """Forwards requests with a signature that is valid for a few minutes. A request that is sent again gets a new one.

    The credentials are those that botocore finds: environment, shared files, single sign-on, web identity, containers,
    instance roles. Those that expire are renewed.
    """

    def __init__(self, driver: Driver, login: AwsLogin) -> None:
        """Raises ``SettingsError`` without credentials or a region."""
        super().__init__(driver)
        self._profile = login.profile or "default"
        session = Session(profile=login.profile)
        try:
            credentials = session.get_credentials()
            region = login.region_of(driver.url) or session.get_config_variable("region")
        except BotoCoreError as error:
            raise SettingsError(f"The settings of AWS cannot be used: {error}") from None
        if credentials is None:
            raise SettingsError(
                f"There are no credentials of AWS: name a profile by {option('aws_profile')}, or set AWS_ACCESS_KEY_ID "
                "and AWS_SECRET_ACCESS_KEY."
            )
        if not region:
            raise SettingsError(f"The region of AWS is unknown: give {option('aws_region')}.")
        self._credentials, self._region = credentials, str(region)
        self._service = login.service_of(driver.url)

    @property
    def login(self) -> str:
        """See ``Driver.login``."""
        return f"aws {self._profile}"

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """See ``Driver.send``. Raises ``ConnectError`` if expired credentials cannot be renewed."""
        parts = urlsplit(self.url)
        path, _, query = target.partition("?")
        url = f"{parts.scheme}://{parts.netloc}{parts.path}{path}?{_encoded(query)}"
        digest = hashlib.sha256(body or b"").hexdigest()
        request = AWSRequest(method, url, headers={"x-amz-content-sha256": digest}, data=body)
        try:
            # One set of keys for the whole signature: another thread may be renewing them.
            SigV4Auth(self._credentials.get_frozen_credentials(), self._service, self._region).add_auth(request)
        except (BotoCoreError, RuntimeError) as error:  # the latter if they are expired when they were renewed
            raise ConnectError(f"The credentials of AWS cannot be renewed: {error}") from None
        return self._driver.send(method, target, body, {**headers, **dict(request.headers.items())})


def _encoded(query: str) -> str:
    """A query as AWS encodes it before it checks the signature (RFC 3986). It is sent as it is."""
    pairs = [one.partition("=") for one in query.split("&") if one]
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, _, value in pairs)


def _quoted(text: str) -> str:
    return quote(unquote(text), safe="-_.~")
