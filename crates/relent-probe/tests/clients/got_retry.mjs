// got with its defaults and a time-out.
import got from 'got';

const {
	RELENT_PROBE_URL: url,
	RELENT_PROBE_METHOD: method,
	RELENT_PROBE_BODY: body,
	RELENT_PROBE_KEY: key,
	RELENT_PROBE_CALLS: calls,
} = process.env;

for (let call = 0; call < Number(calls); call++) {
	try {
		await got(url, {
			method,
			timeout: {request: 700},
			headers: key ? {'idempotency-key': key} : {},
			...(body ? {body} : {}),
		});
	} catch (error) {
		console.error(error.message);
		process.exitCode = 1;
	}
}
