// What is generated: fetch client, types, functions, and zod schemas that check each answer.
export default {
  input: '../../internal/api/openapi.yaml',
  output: { path: 'src/generated', clean: true },
  plugins: [
    '@hey-api/client-fetch',
    '@hey-api/typescript',
    { name: 'zod', dates: { offset: true } }, // a dispatch plan has London's offset, and a request may have any
    { name: '@hey-api/sdk', validator: true },
  ],
};
