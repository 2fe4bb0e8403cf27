"""requests with urllib3's Retry on its adapter, as the documentation of both shows it; waits cut to a tenth."""

import os
import sys

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

url, method = os.environ["RELENT_PROBE_URL"], os.environ["RELENT_PROBE_METHOD"]
body, key = os.environ["RELENT_PROBE_BODY"], os.environ["RELENT_PROBE_KEY"]

session = requests.Session()
session.trust_env = False
retry = Retry(total=4, backoff_factor=0.1, status_forcelist=[429, 502, 503, 504])
session.mount("http://", HTTPAdapter(max_retries=retry))
failed = False
for _ in range(int(os.environ["RELENT_PROBE_CALLS"])):
    try:
        headers = {"Idempotency-Key": key} if key else {}
        response = session.request(method, url, data=body or None, headers=headers, timeout=0.7)
        response.raise_for_status()
    except requests.RequestException as error:
        print(error, file=sys.stderr)
        failed = True
sys.exit(1 if failed else 0)
