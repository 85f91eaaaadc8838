"""Resources and prompts: refused unless named, and a resource is read only after the kernel agreed."""

import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import anyio.to_thread
from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptRequest,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from pydantic import BaseModel

from qwed_mcp.definitions.screening import findings
from qwed_mcp.definitions.wire import TooLarge
from qwed_mcp.proxy.answers import refused
from qwed_mcp.proxy.asking import Asker, Proposed
from qwed_mcp.proxy.naming import whole_name
from qwed_mcp.proxy.options import Passes
from qwed_mcp.proxy.outcomes import Outcomes
from qwed_mcp.proxy.upstream import Unanswered, Upstream
from qwed_sdk.calls.checks import Refusal

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
log = logging.getLogger(__name__)
_NO_ANSWER = -32000
READ = "read_resource"


class Beyond:
    """Answers what is about resources and prompts, as far as they are named."""

    def __init__(self, name: str, upstream: Upstream, passes: Passes, asker: Asker, outcomes: Outcomes) -> None:
        self._name = name
        self._upstream = upstream
        self._passes = passes
        self._asker = asker
        self._outcomes = outcomes

    def handlers(self) -> dict[str, Any]:
        """Those of the server that we offer: what is not named is not there."""
        found: dict[str, Any] = {}
        if self._passes.resources:
            found |= {
                "on_list_resources": self.list_resources,
                "on_list_resource_templates": self.list_templates,
                "on_read_resource": self.read_resource,
            }
        if self._passes.prompts:
            found |= {"on_list_prompts": self.list_prompts, "on_get_prompt": self.get_prompt}
        return found

    async def list_resources(self, _: Any, __: PaginatedRequestParams | None) -> ListResourcesResult:
        """The resources that are named, and speak of nothing but themselves."""
        client = self._upstream.client
        listed = await self._listed(lambda at: client.list_resources(cursor=at, cache_mode="bypass"), "resources")
        return ListResourcesResult(
            resources=await _honest([each for each in listed if self._passes.resource(str(each.uri))])
        )

    async def list_templates(self, _: Any, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """None: a template names nothing before it is filled in, and what it is filled in with can be read by name."""
        return ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(self, _: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        """The resource, where it is named and the kernel agrees."""
        uri = str(params.uri)
        if not self._passes.resource(uri):
            raise MCPError(INVALID_PARAMS, f"this resource does not pass: --allow-resource {uri} would let it")
        permit = await self._asker.before(Proposed(whole_name(self._name, READ), {"uri": uri}))
        if isinstance(permit, Refusal):
            told = refused(permit)
            raise MCPError(INVALID_PARAMS, getattr(told.content[0], "text", "DENIED"), told.meta)
        onward = ReadResourceRequest(params=ReadResourceRequestParams(uri=permit.arguments["uri"]))
        result: ReadResourceResult | None = None
        try:
            result = await self._answered(self._upstream.client.session.send_request(onward, ReadResourceResult))
            return result
        finally:
            self._outcomes.add(permit, result)

    async def list_prompts(self, _: Any, __: PaginatedRequestParams | None) -> ListPromptsResult:
        """The prompts that are named, and speak of nothing but themselves."""
        client = self._upstream.client
        listed = await self._listed(lambda at: client.list_prompts(cursor=at, cache_mode="bypass"), "prompts")
        return ListPromptsResult(prompts=await _honest([each for each in listed if each.name in self._passes.prompts]))

    async def get_prompt(self, _: Any, params: GetPromptRequestParams) -> GetPromptResult:
        """The prompt, where it is named."""
        if params.name not in self._passes.prompts:
            raise MCPError(INVALID_PARAMS, "this prompt does not pass: --allow-prompt and its name would let it")
        onward = GetPromptRequest(params=GetPromptRequestParams(name=params.name, arguments=params.arguments))
        return await self._answered(self._upstream.client.session.send_request(onward, GetPromptResult))

    async def _answered(self, question: Awaitable[T]) -> T:
        try:
            return await self._upstream.asked(question)
        except Unanswered as error:
            raise MCPError(_NO_ANSWER, str(error)) from None

    async def _listed(self, page: Any, member: str) -> list[Any]:
        try:
            return await self._upstream.pages(page, member)
        except Unanswered as error:
            raise MCPError(_NO_ANSWER, str(error)) from None


async def _honest(listed: list[M]) -> list[M]:
    return await anyio.to_thread.run_sync(lambda: [each for each in listed if _is_honest(each)])


def _is_honest(listed: BaseModel) -> bool:
    """Whether a model may read what is said of it; whoever knows its name can have it all the same."""
    said = listed.model_dump(by_alias=True, exclude_none=True, mode="json")
    try:
        found = findings({**said, "icons": None})
    except TooLarge:
        return False
    for each in found:
        log.warning("what the server says of one of its resources or prompts is left out: %s", each.reason)
    return not found
