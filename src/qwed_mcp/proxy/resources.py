"""Resources and prompts through the proxy: only allowed ones pass, and reading a resource is authorized."""

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

from qwed_mcp.proxy.authorizer import Authorizer, ProposedCall
from qwed_mcp.proxy.execution_log import ExecutionLog
from qwed_mcp.proxy.proxy_options import PassthroughPolicy
from qwed_mcp.proxy.results import refusal_result
from qwed_mcp.proxy.server_name import qualified_tool_name
from qwed_mcp.proxy.upstream import UnansweredRequestError, Upstream
from qwed_mcp.tool_pinning.digest import DefinitionTooLargeError
from qwed_mcp.tool_pinning.injection_scan import scan_definition
from qwed_sdk.permits import Refusal

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
log = logging.getLogger(__name__)
_UPSTREAM_ERROR = -32000
READ_RESOURCE = "read_resource"


class ResourceHandler:
    """Answers requests about resources and prompts that the policy allows."""

    def __init__(
        self, name: str, upstream: Upstream, policy: PassthroughPolicy, authorizer: Authorizer, executions: ExecutionLog
    ) -> None:
        self._name = name
        self._upstream = upstream
        self._policy = policy
        self._authorizer = authorizer
        self._executions = executions

    def handlers(self) -> dict[str, Any]:
        """Return the request handlers to register; kinds that the policy does not allow have none."""
        handlers: dict[str, Any] = {}
        if self._policy.resources:
            handlers |= {
                "on_list_resources": self.list_resources,
                "on_list_resource_templates": self.list_templates,
                "on_read_resource": self.read_resource,
            }
        if self._policy.prompts:
            handlers |= {"on_list_prompts": self.list_prompts, "on_get_prompt": self.get_prompt}
        return handlers

    async def list_resources(self, _: Any, __: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return the allowed resources whose descriptions are free of injections."""
        client = self._upstream.client
        listed = await self._list(lambda cursor: client.list_resources(cursor=cursor, cache_mode="bypass"), "resources")
        return ListResourcesResult(
            resources=await _drop_injections(
                [resource for resource in listed if self._policy.allows_resource(str(resource.uri))]
            )
        )

    async def list_templates(self, _: Any, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """Return no templates: a template has no address to check, but a filled-in one can be read by its URI."""
        return ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(self, _: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return the resource if the policy allows it and the call is authorized."""
        uri = str(params.uri)
        if not self._policy.allows_resource(uri):
            raise MCPError(INVALID_PARAMS, f"resource not allowed: add --allow-resource {uri}")
        permit = await self._authorizer.authorize(
            ProposedCall(qualified_tool_name(self._name, READ_RESOURCE), {"uri": uri})
        )
        if isinstance(permit, Refusal):
            refusal = refusal_result(permit)
            raise MCPError(INVALID_PARAMS, getattr(refusal.content[0], "text", "DENIED"), refusal.meta)
        forwarded = ReadResourceRequest(params=ReadResourceRequestParams(uri=permit.arguments["uri"]))
        result: ReadResourceResult | None = None
        try:
            result = await self._request(self._upstream.client.session.send_request(forwarded, ReadResourceResult))
            return result
        finally:
            self._executions.add(permit, result)

    async def list_prompts(self, _: Any, __: PaginatedRequestParams | None) -> ListPromptsResult:
        """Return the allowed prompts whose descriptions are free of injections."""
        client = self._upstream.client
        listed = await self._list(lambda cursor: client.list_prompts(cursor=cursor, cache_mode="bypass"), "prompts")
        return ListPromptsResult(
            prompts=await _drop_injections([prompt for prompt in listed if prompt.name in self._policy.prompts])
        )

    async def get_prompt(self, _: Any, params: GetPromptRequestParams) -> GetPromptResult:
        """Return the prompt if the policy allows it."""
        if params.name not in self._policy.prompts:
            raise MCPError(INVALID_PARAMS, "prompt not allowed: add --allow-prompt with its name")
        forwarded = GetPromptRequest(params=GetPromptRequestParams(name=params.name, arguments=params.arguments))
        return await self._request(self._upstream.client.session.send_request(forwarded, GetPromptResult))

    async def _request(self, request: Awaitable[T]) -> T:
        try:
            return await self._upstream.request_answer(request)
        except UnansweredRequestError as error:
            raise MCPError(_UPSTREAM_ERROR, str(error)) from None

    async def _list(self, page: Any, member: str) -> list[Any]:
        try:
            return await self._upstream.list_pages(page, member)
        except UnansweredRequestError as error:
            raise MCPError(_UPSTREAM_ERROR, str(error)) from None


async def _drop_injections(listed: list[M]) -> list[M]:
    return await anyio.to_thread.run_sync(lambda: [item for item in listed if _is_free_of_injections(item)])


def _is_free_of_injections(item: BaseModel) -> bool:
    """Return True if a model may read the description; the item itself stays readable by name."""
    description = item.model_dump(by_alias=True, exclude_none=True, mode="json")
    try:
        findings = scan_definition({**description, "icons": None})
    except DefinitionTooLargeError:
        return False
    for finding in findings:
        log.warning("mcp proxy resource or prompt not listed: %s", finding.reason)
    return not findings
