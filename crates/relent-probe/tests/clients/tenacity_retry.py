"""requests under tenacity's decorator with its default of what to retry, and its full jitter."""

import os
import sys

import requests
from tenacity import RetryError, retry, stop_after_attempt, wait_random_exponential

url, method = os.environ["RELENT_PROBE_URL"], os.environ["RELENT_PROBE_METHOD"]
body, key = os.environ["RELENT_PROBE_BODY"], os.environ["RELENT_PROBE_KEY"]


@retry(stop=stop_after_attempt(5), wait=wait_random_exponential(multiplier=0.3, max=10))
def call():
    headers = {"Idempotency-Key": key} if key else {}
    response = requests.request(method, url, data=body or None, headers=headers, timeout=0.7)
    response.raise_for_status()


failed = False
for _ in range(int(os.environ["RELENT_PROBE_CALLS"])):
    try:
        call()
    except RetryError as error:
        print(error, file=sys.stderr)
        failed = True
sys.exit(1 if failed else 0)
